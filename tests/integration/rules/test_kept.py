"""A working memory in a store: it survives kill -9 and finds its tokens again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from metatree.rules import open_memory
from metatree.storage.store import Store

pytestmark = pytest.mark.integration

RULE = '((<x> on <y>) -{(<x> is fixed)} -> "loose")'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


def test_facts_come_back_with_their_types_order_and_provenance(path: Path, store: Store) -> None:
    memory = open_memory(store)
    facts = [
        ("b", "w", 1),
        ("a", "w", Decimal("1.50")),
        ("a", "w", 0.1),
        ("a", "w", 2**80),
        ("a", "says", "3 apples"),
        ("a", "says", "3"),
        (("b", "w", 1), "since", "2024-01-01"),
    ]
    memory.add_all(facts)
    memory.add("c", "w", 1, provenance={"agent": "me", "step": 3})
    memory.retract("b", "w", 1)
    memory.add("b", "w", 1)
    other = open_memory(store, "another")
    other.add("not", "in", "main")
    with Store.open(path) as second:
        again = open_memory(second)
        expected = [*facts[1:], ("c", "w", 1), facts[0]]
        assert list(again) == expected
        assert [type(f[2]) for f in again] == [type(f[2]) for f in expected]
        assert again.provenance(("c", "w", 1)) == {"agent": "me", "step": 3}
        assert list(open_memory(second, "another")) == [("not", "in", "main")]


def test_tokens_come_back_as_they_were(path: Path, store: Store) -> None:
    memory = open_memory(store)
    agenda = memory.add_production(RULE)
    memory.state("(a on b) (c on d) (e on f) (g on h)")
    memory.commit("loose", add=[("a", "b"), ("c", "d"), ("e", "f")])
    memory.retract("c", "on", "d")  # committed, then withdrawn
    memory.retract("e", "on", "f")
    memory.add("e", "on", "f")  # withdrawn, then derived again
    memory.add("a", "is", "fixed")
    memory.commit("loose", remove=[("a", "b")])  # withdrawn, and dealt with
    with Store.open(path) as second:
        again = open_memory(second)
        restored = again.add_production(RULE)
        for name in ("to_add", "to_remove", "committed"):
            assert set(getattr(restored, name)) == set(getattr(agenda, name)), name
        assert set(restored.to_add) == {("e", "f"), ("g", "h")}
        assert set(restored.to_remove) == {("c", "d"), ("e", "f")}


def test_tokens_of_another_text_mean_nothing(path: Path, store: Store) -> None:
    memory = open_memory(store)
    agenda = memory.add_production(RULE)
    memory.state("(a on b)")
    memory.commit("loose", add=agenda.tokens())
    with Store.open(path) as second:
        changed = open_memory(second).add_production('((<x> on <y>) -> "loose")')
        assert list(changed.to_add) == [("a", "b")]


def test_what_a_commit_asserted_comes_back(path: Path, store: Store) -> None:
    rule = '((<x> on <y>) -> (! <y> is covered) (!! <x> was seen) "cover")'
    memory = open_memory(store)
    agenda = memory.add_production(rule, controlled=True)
    memory.state("(a on b)")
    memory.commit("cover", add=agenda.tokens())
    with Store.open(path) as second:
        again = open_memory(second)
        assert ("a", "was", "seen") in again
        again.add_production(rule, controlled=True)
        assert again.is_derived(("b", "is", "covered"))
        again.retract("a", "on", "b")
        assert ("b", "is", "covered") not in again
        assert ("a", "was", "seen") in again


CHILD = """
import sys
from metatree.rules import open_memory
from metatree.storage.store import Store
memory = open_memory(Store.open(sys.argv[1]))
agenda = memory.add_production('((<x> n <y>) -> "seen")')
for n in range(1_000_000):
    memory.add(f"x{n}", "n", n)
    if n % 3 == 0:
        memory.commit("seen", add=[(f"x{n}", n)])
    print(n, flush=True)
"""


def test_what_a_call_kept_survives_kill_9(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= 200:
            break
    os.kill(child.pid, signal.SIGKILL)
    last = max([200, *(int(line) for line in child.stdout if line.strip())])
    child.wait()
    child.stdout.close()
    with Store.open(path) as store:
        memory = open_memory(store)
        agenda = memory.add_production('((<x> n <y>) -> "seen")')
        assert len(memory) in (last + 1, last + 2)
        assert {f[2] for f in memory} == set(range(len(memory)))
        committed = {values[1] for values in agenda.committed}
        assert committed >= {n for n in range(last + 1) if n % 3 == 0}
        assert len(agenda.to_add) + len(agenda.committed) == len(memory)


def test_100_000_facts_load_with_their_tokens(path: Path, store: Store) -> None:
    memory = open_memory(store)
    memory.add_all((f"a{n}", "species", f"s{n % 20}") for n in range(100_000))
    with Store.open(path) as second:
        again = open_memory(second)
        again.add_production('((<x> species <s>) -{(species <s> -)} -> "gather")')
        assert len(again) == len(again.agenda("gather")) == 100_000
