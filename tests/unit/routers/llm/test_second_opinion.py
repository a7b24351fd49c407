"""What a model read, beside the passages of the tree."""

from __future__ import annotations

import asyncio
from typing import Any

from metatree_routers.llm._second_opinion import SecondOpinion, settled
from metatree_routers.weighing.trust import HEARD, READS, Trust

from metatree import Answer, Node, Passage, Reading, ReadRequest
from metatree.durable._runner import _memory

HERE, THERE = Node("here", "here"), Node("there", "there")
SAID = Reading((Answer("q", "seven", "seven"),))
NOTHING = Reading(useful=False)


def passages(here: float, there: float) -> Any:
    def ranked(question: str, **_: Any) -> list[Passage]:
        both = [
            Passage("here", "here", "it is seven\n", 0, (1, 1), here),
            Passage("there", "there", "it is eight\n", 0, (1, 1), there),
        ]
        return sorted(both, key=lambda passage: -passage.score)

    return ranked


def read(reading: Reading, here: float, there: float, trust: Trust | None = None) -> Reading:
    opinion = SecondOpinion(passages(here, there), trust or Trust(prior=READS), Trust())
    return asyncio.run(opinion.on(ReadRequest(HERE, "it is seven", ("q",)), reading))


def poor() -> Trust:
    """Return what is known of a reader that was wrong once or twice."""
    trust = Trust(prior=READS)
    read(SAID, 0.02, 0.9, trust)
    assert HEARD <= trust.accuracy < 0.65
    return trust


def useless() -> Trust:
    """Return what is known of a reader that answers from each text that does not answer."""
    trust = Trust(prior=READS)
    for _ in range(4):
        read(SAID, 0.02, 0.9, trust)
        read(NOTHING, 0.9, 0.02, trust)
    assert trust.accuracy < 0.5, "it says nothing"
    return trust


def proven() -> Trust:
    """Return what is known of a reader that agrees with the passages on 40 texts."""
    return agreeing(40, 0)


def middling() -> Trust:
    """Return what is known of a reader that agrees with the passages on three texts in four."""
    return agreeing(45, 15)


def agreeing(texts: int, wrong: int) -> Trust:
    trust = Trust(prior=READS)
    for number in range(texts):
        trust.learn(0.95 if number % 2 else 0.05, float(number % 2))
    for number in range(wrong):
        trust.learn(0.95 if number % 2 else 0.05, 1.0 - number % 2)
    return trust


def test_where_the_passages_say_nothing_the_word_of_a_model_stands_that_was_not_wrong() -> None:
    trust = Trust(prior=READS)
    before = trust.accuracy
    [said] = read(SAID, 0.1, 0.1, trust).answers
    assert said.answer == "seven" and said.confidence is not None and 0.7 <= said.confidence < 0.9
    assert read(NOTHING, 0.1, 0.3, trust) == NOTHING
    assert trust.accuracy == before, "they say nothing of the model"


def test_what_the_passages_find_likelier_elsewhere_a_model_has_to_earn() -> None:
    assert read(SAID, 0.0, 0.5).answers == (), "nothing is known of it"
    [believed] = read(SAID, 0.0, 0.5, proven()).answers
    assert believed.confidence is not None and believed.confidence >= 0.7


def reading_run(trust: Trust, texts: int) -> str:
    """Read so many other texts in vain, then one of which the model says that it answers, all in one run."""
    memory = _memory.set({})
    try:
        assert settled(trust, Trust()) == "", "nothing was read"
        for number in range(texts):
            opinion = SecondOpinion(passages(0.1, 0.1), trust, Trust())
            asyncio.run(opinion.on(ReadRequest(HERE, f"text {number}", ("q",)), NOTHING))
        why = settled(trust, Trust())
        claimed = bool(read(SAID, 0.1, 0.1, trust).answers)
        assert not (why and claimed), "it would have been worth asking"
        return "claimed" if claimed else "settled" if why else "not claimed"
    finally:
        _memory.reset(memory)


def test_a_model_that_read_in_vain_is_believed_as_long_as_it_is_good_enough() -> None:
    assert [reading_run(middling(), texts) for texts in range(3)] == ["claimed", "not claimed", "settled"]
    assert [reading_run(proven(), texts) for texts in (0, 5, 10)] == ["claimed"] * 3
    assert [reading_run(Trust(prior=READS), texts) for texts in (0, 5)] == ["claimed", "not claimed"]


def test_a_router_that_is_right_leads_to_texts_that_answer() -> None:
    right, wrong = Trust(), Trust()
    for _ in range(20):
        right.learn(0.95, 1.0)
        wrong.learn(0.95, 0.0)
    claimed = []
    for router in (right, Trust(), wrong):
        opinion = SecondOpinion(passages(0.0, 0.4), Trust(prior=READS), router)
        claimed.append(bool(asyncio.run(opinion.on(ReadRequest(HERE, "it is seven", ("q",)), SAID)).answers))
    assert claimed == [True, False, False]


def test_something_is_learned_where_the_passages_lean_to_the_first_text() -> None:
    for said, better in ((SAID, True), (NOTHING, False)):
        trust = Trust(prior=READS)
        before = trust.accuracy
        read(said, 0.2, 0.1, trust)
        read(said, 0.4, 0.5, trust)
        assert trust.accuracy == before, "as much speaks for neither"
        read(said, 0.5, 0.1, trust)
        assert (trust.accuracy > before) == better


def test_what_is_asked_again_in_a_run_is_learned_from_once() -> None:
    memory = _memory.set({})
    try:
        trust = Trust(prior=READS)
        read(SAID, 0.9, 0.02, trust)
        once = trust.accuracy
        read(SAID, 0.9, 0.02, trust)
        assert trust.accuracy == once > Trust(prior=READS).accuracy
    finally:
        _memory.reset(memory)


def test_a_text_that_is_read_twice_in_vain_counts_once() -> None:
    memory = _memory.set({})
    try:
        trust = middling()
        for _ in range(5):
            read(NOTHING, 0.1, 0.1, trust)
        assert read(SAID, 0.1, 0.1, trust).answers, "it is the same text"
    finally:
        _memory.reset(memory)


def test_a_few_unlucky_texts_do_not_drop_a_model() -> None:
    trust = Trust(prior=READS)
    for _ in range(2):
        read(NOTHING, 0.88, 0.02, trust)
    assert trust.accuracy < HEARD and trust.too_poor(HEARD, "texts") == ""
    assert read(SAID, 0.1, 0.1, trust).answers == (), "but it is not believed alone"


def test_where_the_passages_say_nothing_the_word_of_a_model_is_doubted_that_was_wrong() -> None:
    doubted = read(SAID, 0.1, 0.3, useless())
    assert doubted.answers == ()


def test_a_model_earns_to_be_believed_against_the_passages() -> None:
    assert read(SAID, 0.02, 0.8).answers == (), "nothing is known of it"
    assert [answer.answer for answer in read(NOTHING, 0.9, 0.02).answers] == ["it is seven"]
    trust = Trust(prior=READS)
    for _ in range(12):
        read(SAID, 0.9, 0.02, trust)
        read(NOTHING, 0.02, 0.9, trust)
    believed = read(SAID, 0.02, 0.8, trust)
    assert [answer.answer for answer in believed.answers] == ["seven"]
    assert read(NOTHING, 0.8, 0.02, trust).answers == ()


def test_a_reader_that_was_wrong_answers_no_more_than_the_passages() -> None:
    assert read(SAID, 0.02, 0.9, useless()).answers == ()
    found = read(NOTHING, 0.9, 0.02, useless())
    assert [(answer.answer, answer.quote) for answer in found.answers] == [("it is seven", "it is seven")]
    assert found.answers[0].confidence is not None and found.answers[0].confidence >= 0.5


def test_a_useless_reader_is_not_heard_at_all() -> None:
    trust = useless()
    assert trust.too_poor(HEARD, "texts").startswith("the model was right in about ")
    found = read(SAID, 0.9, 0.02, trust)
    assert [answer.answer for answer in found.answers] == ["it is seven"], "in the words of the source"
    assert read(SAID, 0.1, 0.3, trust).answers == ()


def test_a_poor_model_is_tried_again_some_day() -> None:
    trust = useless()
    refused = 0
    while trust.too_poor(HEARD, "texts"):
        refused += 1
    assert 3 < refused < 100


def test_a_part_of_an_answer_and_new_questions_stay() -> None:
    part = Reading((Answer("q", "between six and eight", "six", complete=False),), ("Which?",), "a note")
    kept = read(part, 0.02, 0.9, poor())
    assert kept.answers == part.answers and kept.new_questions == ("Which?",) and kept.useful
