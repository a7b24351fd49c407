"""Questions that want many messages: told from their words, and read by their subject."""

from __future__ import annotations

import pytest
from metatree_memory_tools.conversations import ConversationLog
from metatree_routers import TextEvidence
from metatree_routers.query.cover import cover_of, is_on_asker
from metatree_routers.query.wording import wants_advice

from metatree import Tree, search


@pytest.mark.parametrize(
    ("question", "subject", "by_asker"),
    [
        ("In what order did I mention the boats across our chats?", "boats", True),
        ("Can you summarise how my garden plans have changed over time?", "garden plans", False),
        ("How has the budget evolved throughout our conversations?", "budget", False),
    ],
)
def test_a_question_on_many_messages_is_read_by_its_subject(
    question: str, subject: str, by_asker: bool
) -> None:
    cover = cover_of(question)
    assert cover is not None
    words = cover.subject.split()
    assert set(subject.split()) <= set(words)
    assert not {"order", "chats", "conversations", "summarise", "changed"} & set(words)
    assert cover.by_asker is by_asker


@pytest.mark.parametrize(
    "question",
    [
        "How many redirects are allowed?",
        "What did I order in order to save money?",
        "When did the session begin?",
        "What is the order of service?",
        "How does the cache work?",
        "Can you summarise it?",
        "",
    ],
)
def test_other_questions_are_read_as_they_are(question: str) -> None:
    assert cover_of(question) is None


def _talk() -> Tree:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    for day, said in enumerate(("A boat.", "A boat, a boat, my boat is blue.", "My boat is red."), start=1):
        for turn in range(12):
            log.say("ann", f"{said} Number {turn}." if turn in (1, 10) else "Nothing.", at=f"2026-01-0{day}")
    return tree


def test_what_was_said_is_listed_in_the_order_of_time_where_that_is_asked_for() -> None:
    tree = _talk()
    asked = "In what order did I mention the boat in our chats?"
    found = search(asked, tree=tree, returns="nodes", accept="turn", k=6)
    ids = [node.id.removeprefix("conversations:/talk/") for node in found.nodes]
    assert ids == ["1/2", "1/11", "2/2", "2/11", "3/2", "3/11"]
    assert [node.at for node in found.nodes][::2] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    plain = search("boat", tree=tree, returns="nodes", accept="turn", k=6)
    assert [node.score for node in plain.nodes] == sorted((node.score for node in plain.nodes), reverse=True)
    assert [node.id for node in plain.nodes] != [node.id for node in found.nodes]


def test_who_asks_what_they_brought_up_is_shown_what_people_said() -> None:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    for day, boat in enumerate(("sloop", "ketch", "yawl"), start=1):
        log.say("user", f"I bought a boat, a {boat}.", at=f"2026-01-0{day}T09:00")
        reply = f"A boat is a boat. You brought up different aspects of a boat, the {boat}, in order."
        log.say("assistant", reply, at=f"2026-01-0{day}T09:01")
        log.say("user", "Thanks for the weather report and the news.", at=f"2026-01-0{day}T09:02")
    evidence = TextEvidence(tree)
    asked = "Can you list the order in which I brought up different aspects of my boat in our conversations?"
    found = [scored.node_id for scored in evidence.score([asked], k=40) if scored.node_id.count("/") == 3]
    assert {tree.get(node).title for node in found[:3]} == {"user"}
    assert all("bought a boat" in tree.content(node) for node in found[:3])
    plain = [s.node_id for s in evidence.score(["boat"], k=40) if s.node_id.count("/") == 3]
    assert "assistant" in {tree.get(node).title for node in plain[:3]}, "for other questions nothing changes"


@pytest.mark.parametrize(
    ("question", "on_asker"),
    [
        ("How much did I pay for the boat?", True),
        ("What's my budget?", True),
        ("Could you tell me when I'm due in the yard?", True),
        ("Which paint did you recommend to me?", False),
        ("What was your advice on my boat?", False),
        ("Can you remind me of the name of my yard?", False),
        ("Summarise what I said on the boat.", False),
        ("What is the length of the boat?", False),
    ],
)
def test_a_question_on_the_asker_is_told_from_one_on_what_a_machine_said(
    question: str, on_asker: bool
) -> None:
    assert is_on_asker(question) is on_asker


def _turns(evidence: TextEvidence, question: str) -> list[str]:
    found = (scored.node_id for scored in evidence.score([question], k=40))
    return [node.removeprefix("conversations:/talk/") for node in found if node.count("/") == 3]


def test_what_a_machine_repeats_comes_behind_what_a_person_said_of_themselves() -> None:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    log.say("user", "I paid 300 for the boat and its trailer last week, which was more than planned.")
    log.say("assistant", "The boat: 300 paid for the boat. The boat is paid.")
    evidence = TextEvidence(tree)
    assert _turns(evidence, "How much did I pay for the boat?") == ["1/1", "1/2"]
    assert _turns(evidence, "How much did you say I pay for the boat?") == ["1/2", "1/1"]
    assert _turns(evidence, "boat paid") == ["1/2", "1/1"]


def test_a_speaker_goes_on_with_a_subject_in_the_next_turn_of_their_own() -> None:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    need, rain = "It would need a new mast.", "Rain tomorrow, they say."
    for number, said in enumerate((need, rain, rain, rain, rain, rain, "The yawl is for sale.", rain, need)):
        log.say("bob" if number % 2 else "ann", said)
    found = _turns(TextEvidence(tree), "Does the yawl need a mast?")
    assert found.index("1/9") < found.index("1/1"), (
        "of two that say the same, the one by another on the subject"
    )


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("Can you suggest some good books?", True),
        ("How should I list the sources that I used?", True),
        ("I'm looking to add stocks. Which might fit?", True),
        ("When should I be there?", False),
        ("How many books did I say I could read?", False),
        ("Which libraries are used here?", False),
    ],
)
def test_a_question_for_advice_is_told_from_one_for_a_fact(question: str, advice: bool) -> None:
    assert wants_advice(question) is advice


def _invested() -> tuple[Tree, TextEvidence]:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    log.say("ann", "I prefer dividends for a steady income.")
    log.say("ann", "My portfolio is large, and I add stocks to it in May.")
    for _ in range(3):
        log.say("ann", "The weather in May was wet.")
    return tree, TextEvidence(tree)


def _listed(evidence: TextEvidence, question: str) -> list[str]:
    found = (scored.node_id for scored in evidence.rank([question], k=40))
    return [node.removeprefix("conversations:/talk/") for node in found if node.count("/") == 3]


def test_a_turn_that_states_a_wish_comes_up_behind_the_best_where_advice_is_asked_for() -> None:
    tree, evidence = _invested()
    asked = "Which stocks should I add to my portfolio?"
    wish = "conversations:/talk/1/1"
    assert _listed(evidence, asked)[:2] == ["1/2", "1/1"]
    assert "states a standing wish" in evidence.why([asked], wish)
    scores = {scored.node_id: scored.score for scored in evidence.rank([asked], k=40)}
    fact = {scored.node_id: scored.score for scored in evidence.rank(["Which stocks are there?"], k=40)}
    assert scores[wish] > scores["conversations:/talk/1/3"]
    assert scores[wish] > {s.node_id: s.score for s in evidence.score([asked], k=40)}.get(wish, 0.0), (
        "what is read for an answer is as it was"
    )
    assert fact[wish] > 0
    ConversationLog(tree, "talk").say("ann", "I no longer prefer dividends for a steady income.")
    assert "states a standing wish" not in TextEvidence(tree).why([asked], wish)


def test_a_wish_of_another_conversation_does_not_come_up_in_one() -> None:
    tree, evidence = _invested()
    ConversationLog(tree, "other").say("ann", "Which stocks should I add to my portfolio?")
    asked = "Which stocks should I add to my portfolio?"
    found = evidence.rank([asked], under="conversations:/other", k=40)
    assert found
    assert all(scored.node_id.startswith("conversations:/other") for scored in found)


def test_a_summary_takes_what_was_said_and_the_reply_together() -> None:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    log.say("user", "The mast of the boat.")
    log.say("assistant", "Oak is hard.")
    log.say("user", "Rain.")
    log.say("assistant", "Rain again.")
    evidence = TextEvidence(tree)
    scores = {
        s.node_id[-3:]: s.score for s in evidence.score(["Summarise what was said on the boat mast"], k=40)
    }
    assert scores["1/1"] == scores["1/2"] > scores.get("1/4", 0.0)
    plain = {s.node_id[-3:]: s.score for s in evidence.score(["boat mast"], k=40)}
    assert plain["1/1"] > plain.get("1/2", 0.0), "for other questions nothing changes"
