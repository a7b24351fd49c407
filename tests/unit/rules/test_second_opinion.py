"""CLIPS as a second opinion, on rules whose meaning both agree on: joins, tests, negated conjunctions, existence."""

from __future__ import annotations

import random
from typing import Any

import pytest

from metatree.rules.language.text import parse_productions
from metatree.rules.language.values import Fact
from metatree.rules.matcher.network import Network

clips = pytest.importorskip("clips", reason="a second opinion: pip install clipspy")

SHAPES = {
    "join": (
        "(<x> on <y>) (<y> on <z>)",
        "(t (i ?x) (a on) (v ?y)) (t (i ?y) (a on) (v ?z))",
    ),
    "same": ("(<x> on <x>)", "(t (i ?x) (a on) (v ?x))"),
    "attribute varies": ("(<x> <r> <y>) (<y> <r> <x>)", "(t (i ?x) (a ?r) (v ?y)) (t (i ?y) (a ?r) (v ?x))"),
    "test": (
        "(<x> w <p>) (<y> w <q>) ((<p> + <q>) > 4)",
        "(t (i ?x) (a w) (v ?p)) (t (i ?y) (a w) (v ?q)) (test (> (+ ?p ?q) 4))",
    ),
    "negation": ("(<x> on <y>) -{(<z> on <x>)}", "(t (i ?x) (a on) (v ?y)) (not (t (a on) (v ?x)))"),
    "negated conjunction": (
        "(<x> on <y>) -{(<y> on <z>) (<z> on <x>)} (<x> w <q>)",
        "(t (i ?x) (a on) (v ?y)) (not (and (t (i ?y) (a on) (v ?z)) (t (i ?z) (a on) (v ?x))))"
        " (t (i ?x) (a w) (v ?q))",
    ),
    "nested": (
        "(<x> on <y>) -{(<z> on <x>) -{(<y> on n3)}}",
        "(t (i ?x) (a on) (v ?y)) (not (and (t (i ?z) (a on) (v ?x)) (not (t (i ?y) (a on) (v n3)))))",
    ),
    "existence": (
        "(<x> w <y>) +{(<z> on <x>)}",
        "(t (i ?x) (a w) (v ?y)) (exists (t (a on) (v ?x)))",
    ),
}


def count(environment: Any) -> int:
    return sum(1 for _ in environment.activations())


@pytest.mark.parametrize("shape", SHAPES)
def test_clips_finds_as_many(shape: str) -> None:
    ours, theirs = SHAPES[shape]
    for seed in range(4):
        rng = random.Random(f"{shape} {seed}")
        network = Network()
        (production,) = parse_productions(f'({ours} -> "r")')
        agenda = network.add_production(production)
        environment = clips.Environment()
        environment.build("(deftemplate t (slot i) (slot a) (slot v))")
        environment.build(f"(defrule r {theirs} =>)")
        template = environment.find_template("t")
        asserted: dict[Fact, Any] = {}
        for _ in range(60):
            if asserted and rng.random() < 0.4:
                fact = rng.choice(list(asserted))
                asserted.pop(fact).retract()
                network.remove(*fact)
            else:
                names = [f"n{rng.randint(1, 3)}" for _ in range(2)]
                fact = (
                    (names[0], "on", names[1]) if rng.random() < 0.6 else (names[0], "w", rng.randint(1, 4))
                )
                if fact in asserted:
                    continue
                values = [clips.Symbol(v) if isinstance(v, str) else v for v in fact]
                asserted[fact] = template.assert_fact(i=values[0], a=values[1], v=values[2])
                network.add(*fact)
            assert len(agenda) == count(environment), (seed, fact)
