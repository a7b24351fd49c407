"""Standing wishes: what is one, which of them hold, which can apply, and what goes with what stated them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from metatree_memory_tools.conversations import ConversationLog

from metatree import Node, Tree, forget, remember, search
from metatree.notes.wishes import BRANCH, KIND, _left, applying, standing, stated
from metatree.result import Wish


@pytest.mark.parametrize(
    ("text", "what", "about"),
    [
        ("Always use APA style when I ask about formatting references.", "rule", "formatting references"),
        ("Please never use emojis.", "rule", ""),
        ("From now on, answer in German.", "rule", ""),
        ("When I ask about deadlines, always give the date.", "rule", "deadlines"),
        ("I'd like you to always cite your sources.", "rule", ""),
        ("Show the formula whenever I ask for a calculation.", "rule", "a calculation"),
        ("I prefer Word over Docs, can you help me with that?", "preference", ""),
        ("Given my preference for quiet places, where should I go?", "preference", ""),
        ("I'd rather walk than take the bus.", "preference", ""),
        ("I no longer prefer Word.", "withdrawal", ""),
        ("You don't need to give the date any more.", "withdrawal", ""),
    ],
)
def test_a_wish_is_told_by_how_it_is_put(text: str, what: str, about: str) -> None:
    (wish,) = stated(f"Thanks a lot! {text}\nBye.")
    assert (wish.text, wish.what, wish.about) == (text, what, about)


@pytest.mark.parametrize(
    "text",
    [
        "I have never been there, so I'm starting from scratch.",
        "I've always been someone who walks.",
        "Should I always ask first?",
        "How do I ensure the query always returns a list?",
        "I'll make sure to be on time.",
        "My partner is always supportive of my work.",
        "I can always catch up with friends later.",
        "When might I prefer to use them?",
        "Should I prioritize bonds over stocks?",
        "```\n# Always keep this\n```",
        "Never mind.",
        "The tests never passed.",
        "",
    ],
)
def test_what_is_told_asked_or_quoted_is_none(text: str) -> None:
    assert stated(text) == []


def _log(*said: tuple[str, str]) -> Tree:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    for minute, (who, text) in enumerate(said):
        log.say(who, text, at=f"2026-01-05T09:{minute:02}")
    return tree


def test_a_turn_that_states_a_wish_has_it_in_the_branch_word_for_word() -> None:
    tree = _log(("ann", "Hello. Always name versions when I ask about libraries. Thanks!"))
    (wish,) = standing(tree)
    assert (wish.text, wish.about) == ("Always name versions when I ask about libraries.", "libraries")
    assert (wish.who, wish.at, wish.source) == ("ann", "2026-01-05T09:00", "conversations:/talk/1/1")
    assert tree.parent(wish.node) == BRANCH


def test_a_machine_wants_nothing() -> None:
    assert standing(_log(("Assistant", "Always keep your keys safe."))) == []


def test_a_later_wish_takes_back_or_changes_an_earlier_one() -> None:
    tree = _log(
        ("ann", "Always give dates in long form when I ask about deadlines."),
        ("ann", "Never use tables."),
        ("ann", "I prefer Word over Docs."),
        ("bob", "I no longer prefer Word over Docs."),
    )
    assert [wish.text[:6] for wish in standing(tree)] == ["Always", "Never ", "I pref"], "bob speaks for bob"
    log = ConversationLog(tree, "talk")
    log.say("ann", "You don't need to give dates in long form any more.", at="2026-01-06T09:00")
    log.say("ann", "Always use tables.", at="2026-01-06T09:01")
    log.say("ann", "I now prefer Docs over Word.", at="2026-01-06T09:02")
    assert [wish.text for wish in standing(tree)] == ["Always use tables.", "I now prefer Docs over Word."]


def test_two_rules_for_one_thing_both_hold() -> None:
    tree = _log(
        ("ann", "Always give dates when I ask about events."),
        ("ann", "Always give prices when I ask about events."),
    )
    assert len(standing(tree)) == 2


def test_what_is_said_later_counts_later_though_clocks_run_backwards() -> None:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    log.say("ann", "I no longer prefer tea over coffee.", at="2026-02-01T09:00")
    log.say("ann", "I prefer tea over coffee.", at="2026-01-01T09:00")
    assert standing(tree) == []


def test_wishes_of_another_conversation_are_kept_apart() -> None:
    tree = _log(("ann", "Never use tables."))
    ConversationLog(tree, "other").say("bob", "Never use lists.", at="2026-01-05T10:00")
    remember(tree, "Please always answer in German.", who="cy", evidence=False)
    here = {wish.who for wish in standing(tree, "conversations:/talk/1")}
    assert here == {"ann", "cy"}, "what the tree was told to remember holds everywhere"
    assert {wish.who for wish in standing(tree)} == {"ann", "bob", "cy"}


def _near(question: str, texts: Sequence[str]) -> list[float]:
    return [0.9 if set(question.split()) & set(text.split()) else 0.0 for text in texts]


def test_only_what_can_apply_is_offered_and_at_most_three() -> None:
    things = ("dates", "prices", "names", "places", "sizes")
    tree = _log(*(("ann", f"Always give {thing} when I ask about {thing}.") for thing in things))
    assert [wish.about for wish in applying(tree, ["what prices"], None, _near)] == ["prices"]
    assert len(applying(tree, ["dates prices names places sizes"], None, _near)) == 3
    assert applying(tree, ["what else"], None, _near) == []
    log = ConversationLog(tree, "talk")
    log.say("ann", "Never use emojis.")
    assert [wish.text for wish in applying(tree, ["what else"], None, _near)] == ["Never use emojis."]


def test_a_search_offers_wishes_beside_what_it_found() -> None:
    tree = _log(
        ("ann", "Always give version numbers when I ask about software dependencies or libraries."),
        ("ann", "Flask and Jinja are in use here."),
        ("assistant", "Good."),
    )
    found = search("Which libraries are used in this project?", tree=tree, returns="nodes", k=3)
    assert [wish.source for wish in found.wishes] == ["conversations:/talk/1/1"]
    assert not any(node.id.startswith(BRANCH) for node in found.nodes), "beside, not among what was found"
    asked = search("Which libraries are used in this project?", tree=tree)
    assert [wish.source for wish in asked.wishes] == ["conversations:/talk/1/1"]
    assert search("Who won the race in Rome?", tree=tree, returns="nodes").wishes == ()


def test_an_updated_or_forgotten_memory_has_other_wishes_or_none() -> None:
    tree = Tree.create(":memory:")
    made = remember(tree, "Always answer in German.", who="ann", evidence=False)
    remember(tree, "Always answer in French.", update=made.node.id, who="ann", evidence=False)
    assert [wish.text for wish in standing(tree)] == ["Always answer in French."]
    forget(tree, made.node.id)
    assert standing(tree) == []
    assert tree.ids([KIND]) == []


def test_a_forgotten_turn_takes_its_wishes_along() -> None:
    tree = _log(("ann", "Never use tables. Please always give dates."), ("ann", "Never use lists."))
    assert len(standing(tree)) == 3
    forget(tree, "conversations:/talk/1/1")
    assert [wish.text for wish in standing(tree)] == ["Never use lists."]


def test_a_wish_alone_can_be_forgotten() -> None:
    tree = _log(("ann", "Never use tables."))
    (wish,) = standing(tree)
    forget(tree, wish.node)
    assert standing(tree) == []
    assert "conversations:/talk/1/1" in tree


def test_wishes_of_many_are_found_once_for_each_state_of_the_tree() -> None:
    tree = Tree.create(":memory:")
    tree.add(Node("wishes:", "Wishes", kind="wishes"))
    log = ConversationLog(tree, "many")
    for number in range(300):
        log.say(f"speaker {number}", f"Never use table {number}.")
    assert len(standing(tree)) == 300
    assert [wish.who for wish in standing(tree)][:12:11] == ["speaker 0", "speaker 11"]


@pytest.mark.parametrize("about", ["w{0}q{1}", "tea and w{0}q{1} with x{0} and y{0}"])
def test_many_wishes_are_compared_in_a_time_that_grows_with_them(about: str) -> None:
    """Of 60,000, quadratic is an hour: this does not end, rather than fail."""
    texts = [f"I now prefer {about.format(number, number * 7)}." for number in range(60_000)]
    wishes = [
        Wish(f"n{number}", text, "preference", "", "ann", "", "n", "chat.txt")
        for number, text in enumerate(texts)
    ]
    taken: dict[str, Wish] = {}
    again = replace(wishes[59_990], node="again")
    left = _left([*wishes, again], taken)
    assert taken["again"] == wishes[59_990] and len(left) == 60_000
