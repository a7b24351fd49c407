"""What a model's word is worth beside the evidence."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_routers.weighing._experts import cases_of, weigh
from metatree_routers.weighing.decide import decided, decided_by_shares
from metatree_routers.weighing.trust import POOR, Trust
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree import Node, Option, RouteDecision, RouteRequest

SCORES = (1.0, 0.55, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1)


def menu(*scores: float | None) -> RouteRequest:
    options = tuple(Option(f"o{n}", f"Option {n}", score=score) for n, score in enumerate(scores))
    return RouteRequest(("q",), "", Node("n", "n"), options)


def trained(accuracy: float, menus: int = 60) -> Trust:
    """Return what is known of a model after so many menus on which the evidence was sharp and right."""
    trust, rng = Trust(), random.Random(3)
    for _ in range(menus):
        right = rng.random() < accuracy
        trust.chose(cases_of(menu(*SCORES).options), "o0" if right else f"o{rng.randrange(1, 8)}")
    return trust


@pytest.mark.parametrize("accuracy", [0.1, 0.4, 0.7, 0.95])
def test_how_often_a_model_is_right_is_learned_from_its_choices(accuracy: float) -> None:
    assert trained(accuracy).accuracy == pytest.approx(accuracy, abs=0.15)


def test_a_model_that_errs_changes_nothing_and_one_that_is_right_decides() -> None:
    request = menu(1.0, 0.6, 0.4, 0.3, 0.2)
    said = RouteDecision("o1", {}, "so it seems")
    assert decided(request, said, trained(0.1)).choice == "o0"
    believed = decided(request, said, trained(0.97))
    assert believed.choice == "o1" and believed.reason == "so it seems"
    assert believed.probabilities["o1"] > 0.8


def test_what_is_ruled_out_needs_the_evidence_too() -> None:
    request = menu(1.0, 0.9, 0.3, 0.0)
    said = RouteDecision("o0", {"o1": "no", "o2": "no", "o3": "no"}, "")
    assert set(decided(request, said, trained(0.97)).unviable) == {"o2", "o3"}
    everything = RouteDecision(None, {f"o{n}": "no" for n in range(4)}, "nothing here")
    assert decided(request, everything, trained(0.1)).choice == "o0"
    assert decided(request, everything, trained(0.97)).choice is None


def test_where_the_evidence_says_nothing_the_words_of_the_model_stand() -> None:
    for request in (menu(None, None, None), menu(0.0, 0.0, 0.0), menu(0.5, 0.5, 0.5)):
        said = RouteDecision("o2", {"o1": "no"}, "because")
        trust = trained(0.1)
        before = trust.accuracy
        assert decided(request, said, trust) == said
        assert trust.accuracy == before


def test_a_leaf_beside_its_branch_is_one_case_with_it() -> None:
    options = (
        Option("a", "A", score=1.0),
        Option("b", "B", score=0.4),
        Option("a/x", "X", parent="A", score=1.0),
    )
    request = RouteRequest(("q",), "", Node("n", "n"), options)
    assert decided(request, RouteDecision("a", {}, ""), trained(0.2)).choice == "a"
    assert decided(request, RouteDecision("a/x", {}, ""), trained(0.2)).choice == "a/x"
    assert decided(request, RouteDecision("b", {}, ""), trained(0.2)).choice == "a/x"


def test_a_child_counts_as_the_option_it_lies_under() -> None:
    options = (Option("a", "A", score=1.0), Option("a/x", "X", parent="A"), Option("b", "B", score=0.2))
    request = RouteRequest(("q",), "", Node("n", "n"), options)
    decision = decided(request, RouteDecision("a/x", {"b": "no"}, ""), Trust())
    assert decision.choice == "a/x" and decision.probabilities["a"] > 0.9


def test_what_was_learned_is_kept_with_the_name_of_the_model() -> None:
    cache = MemoryCache()
    first = Trust(cache, "one")
    for _ in range(20):
        first.chose(cases_of(menu(*SCORES).options), "o7")
    assert Trust(cache, "one").accuracy == pytest.approx(first.accuracy, abs=1e-6) and first.accuracy < 0.2
    assert Trust(cache, "two").accuracy == Trust().accuracy
    for broken in ("no", [1], [None] * 25, [float("nan")] * 25, {"a": 1}):
        cache.set("trust one", broken)
        assert Trust(cache, "one").accuracy == Trust().accuracy


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=12),
    st.integers(-1, 11),
    st.sets(st.integers(0, 11)),
    st.floats(0, 1),
)
def test_decisions_are_among_what_was_offered(
    scores: list[float | None], choice: int, out: set[int], accuracy: float
) -> None:
    request = menu(*scores)
    ids = [option.id for option in request.options]
    said = RouteDecision(
        ids[choice] if 0 <= choice < len(ids) else None, {f"o{n}": "no" for n in out if n < len(ids)}
    )
    trust = Trust()
    decision = decided(request, said, trust)
    assert decision.choice in (None, *ids)
    assert set(decision.unviable) <= set(ids) and decision.choice not in decision.unviable
    assert all(0 <= share <= 1 for share in decision.probabilities.values())
    assert 0 < trust.accuracy < 1


def test_shares_of_experts_that_exclude_each_other_are_those_of_the_evidence() -> None:
    cases = cases_of(menu(1.0, 0.2).options)
    weighed = weigh(cases, {"o0": 0.0, "o1": 0.0}, 0.0)
    assert weighed.best() == "o0" and weighed.none == 0


def test_a_menu_to_which_the_evidence_does_not_lead_may_hold_nothing() -> None:
    """A model that sees there that nothing fits is right, and is believed to be."""
    strong, weak = menu(1.0, 0.5, 0.4), menu(0.5, 0.4, 0.3)
    nothing = RouteDecision(None, {}, "nothing fits")
    alone = Trust()
    before = alone.accuracy
    decided(weak, nothing, alone)
    assert alone.accuracy < before, "nothing better was seen"
    led_astray = Trust()
    decided(strong, RouteDecision("o1"), led_astray)
    before = led_astray.accuracy
    assert decided(weak, nothing, led_astray).choice is None
    assert led_astray.accuracy > before
    elsewhere = RouteRequest(("another",), "", weak.node, weak.options)
    before = led_astray.accuracy
    decided(elsewhere, nothing, led_astray)
    assert led_astray.accuracy < before, "of another question nothing is known"


@pytest.mark.parametrize("by_shares", [False, True])
def test_a_model_that_always_says_that_nothing_leads_ends_no_search(by_shares: bool) -> None:
    trust, request = Trust(), menu(1.0, *[0.5] * 10, *[0.0] * 10)
    for _ in range(20):
        if by_shares:
            shares = {option.id: 0.0 for option in request.options}
            decision = decided_by_shares(request, shares, 1.0, {}, trust)
        else:
            decision = decided(request, RouteDecision(None, {}, "nothing here"), trust)
        assert decision.choice == "o0", "the evidence speaks for it"
    assert "too few to ask it" in trust.too_poor(POOR, "menus")


@pytest.mark.parametrize("accuracy", [0.0, 0.3])
def test_a_model_that_is_wrong_is_not_worth_asking_and_is_tried_again(accuracy: float) -> None:
    trust = trained(accuracy)
    if accuracy:
        assert trust.too_poor(POOR, "menus") == ""
        return
    assert "the model was right in about" in trust.too_poor(POOR, "menus")
    refused = 0
    while trust.too_poor(POOR, "menus"):
        refused += 1
    assert 5 < refused < 200
