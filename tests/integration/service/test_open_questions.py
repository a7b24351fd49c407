"""A question that nothing answers: it is no answer on the wire, on the page and in chats, and says what comes close."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from markdown_it import MarkdownIt
from metatree_agents.service.database.schema import SERVICE
from metatree_agents.service.queue.models import NOT_SAID, Ending
from metatree_agents.service.queue.queue import Query, Queue

from metatree import Limits, Node, Reading, ReadRequest, Tree

from .conftest import Client, Served, opened, proof
from .test_engine import tree, working  # noqa: F401  # a fixture
from .test_openai import client_of, say
from .test_web import asked, entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
EVIL = "<script>alert(1)</script> [x](javascript:alert(1)) ``` <img src=x onerror=alert(1)>"
QUESTION = "Who pays for the lamp?"


def passage(number: int = 1, question: str = QUESTION, **given: Any) -> dict[str, Any]:
    """Return a passage as an engine gives it."""
    return {
        "Question": question,
        "Node": f"hall/lamp {number}",
        "Title": f"Lamp {number}",
        "Place": "hall/lamp.md",
        "SaidBy": "",
        "Lines": [3, 4 + number],
        "Quote": f"Lamp {number} has a bulb of nine watts.",
        "Score": 0.125,
        **given,
    }


def give(engine: Client, topic: str, text: str = QUESTION, seq: int = 1, **given: Any) -> requests.Response:
    ended = {"End": "closest", "Open": [text], "Closest": [passage(n, text) for n in range(1, 5)], **given}
    return engine.answer(text, *ended.pop("Answer", [NOT_SAID]), topic=topic, seq=seq, **ended)


def thread(service: Served, topic: str = "T") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.frontend.get("get-topic-thread", Topic=topic).json()
    return found


def test_what_comes_close_is_in_the_thread_in_events_and_for_other_engines(serve: Serve) -> None:
    service = serve()
    for text in (QUESTION, "Old?", "Both? And?"):
        service.frontend.ask(text)
    service.engine.get("get-new-queries")
    assert give(service.engine, "T").status_code == 200
    assert service.engine.answer("Old?", "Yes.", seq=2).status_code == 200
    partly: dict[str, Any] = {
        "End": "answered",
        "Answer": ["Yes."],
        "Open": ["And?"],
        "Closest": [passage(1, "And?")],
    }
    assert give(service.engine, "T", "Both? And?", 3, **partly).status_code == 200
    first, old, both = thread(service)
    assert (first["Status"], first["Answer"], first["End"]) == ("Done", [NOT_SAID], "closest")
    assert first["Open"] == [QUESTION] and first["Closest"] == [passage(n) for n in range(1, 5)]
    assert (old["Answer"], old["End"], old["Open"], old["Closest"]) == (["Yes."], None, [], [])
    assert (both["End"], both["Open"], both["Closest"]) == ("answered", ["And?"], [passage(1, "And?")])
    assert service.frontend.get("check-query", Topic="T", Seq=1).json() == first
    pairs = proof("Frontend_1", service.frontend.secret)
    said = requests.get(f"{service.url}/api/events", params={**pairs, "Topic": "T", "Seq": "1"}, timeout=20)
    (answer,) = [block for block in said.text.split("\n\n") if "event: answer" in block]
    assert json.loads(answer.partition("data: ")[2]) == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"End": "perhaps"},
        {"Closest": [passage(Lines=[1])]},
        {"Closest": [passage(Lines=[0, 1])]},
        {"Closest": [passage(Score=2)]},
        {"Closest": [passage(Node="a\0b")]},
        {"Closest": [{"Question": QUESTION}]},
        {"Closest": [passage()] * 101},
    ],
)
def test_passages_that_are_none_are_refused(service: Served, wrong: dict[str, Any]) -> None:
    service.frontend.ask(QUESTION)
    service.engine.get("get-new-queries")
    assert give(service.engine, "T", **wrong).status_code == 422
    assert give(service.engine, "T", Closest=[{"Question": QUESTION, "Quote": "q"}]).status_code == 200


def test_an_engine_gives_what_comes_close_and_the_next_question_knows_that_nothing_answered(
    serve: Serve,
    tree: Tree,  # noqa: F811
) -> None:
    service = serve(answer_timeout_s=20.0, claim_timeout_s=5.0)
    question = "Which bank takes the reminder of a customer?"
    contexts: list[str] = []

    class Reader:
        """Finds no answer, and keeps what it was told of the topic."""

        name, version = "silent", "1"

        def read(self, request: ReadRequest) -> Reading:
            contexts.append(request.context)
            return Reading(useful=False)

    with working(service, tree, parts={"reader": Reader()}):
        service.frontend.ask(question)
        found = service.frontend.get("check-query", Topic="T", Seq=1).json()
        service.frontend.ask("How are the lines of an invoice added up?")
        service.frontend.get("check-query", Topic="T", Seq=2)
    assert (found["Answer"], found["Sources"], found["Open"]) == ([NOT_SAID], [], [question])
    assert found["End"] == "closest"
    (first, *_) = found["Closest"]
    assert first["Question"] == question and first["Place"] == "billing/reminder.py"
    assert "thirty days" in first["Quote"] and first["Lines"][0] >= 1
    assert first["Node"] in tree and 0 <= first["Score"] <= 1
    assert contexts[-1] == f"Asked before: {question}\nNothing answered it."


def test_a_search_that_was_cut_off_is_no_answer_either(serve: Serve, tree: Tree) -> None:  # noqa: F811
    service = serve(answer_timeout_s=20.0, claim_timeout_s=5.0)
    with working(service, tree, limits=Limits(reads=0)):
        service.frontend.ask("When is a reminder sent to a customer?")
        found = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert found["Answer"] == ["No answer was found before the search reached its limit."]
    assert found["End"] == "closest"


# the page


def article(page: str) -> str:
    """Return the question of a page that has one."""
    return page[page.index("<article") : page.index("</article>")]


def test_the_page_shows_three_passages_and_asks_for_no_recommendation(serve: Serve) -> None:
    memory, node = Tree.create(":memory:", title="house"), "hall/lamp"
    quote = "Lamp 1 has a bulb of nine watts.\n" + "more " * 500
    memory.add(Node(id=node, title="Lamp", content=f"# Lamps\n{quote}\nAnd a shade.\n"))
    service = serve(memory=memory)
    browser = entered(service, "User_1")
    topic = asked(browser, QUESTION)
    service.engine.get("get-new-queries")
    long = passage(1, Node=node, Quote=quote)
    give(service.engine, topic, Closest=[long, *(passage(n) for n in (2, 3, 4))])
    said = article(browser.get(f"/thread?topic={topic}").text)
    assert "not answered" in said and 'class="answer"' not in said and "Helpful" not in said
    assert f"{NOT_SAID} Closest passages:" in said
    assert [f"Lamp {n}" in said for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert "hall/lamp.md, lines 3–5" in said
    assert "more …</div>" in said and said.count("more ") < 200
    (link,) = re.findall(r'href="(/node[^"]+)#quoted">Lamp 1<', said)
    shown = browser.get(link.replace("&amp;", "&")).text
    assert re.search(r'<mark class="line"[^>]*>Lamp 1 has', shown)
    fetched = browser.get(f"/thread/question?topic={topic}&seq=1").text
    assert f'data-told="{NOT_SAID} Closest passages:"' in fetched


def test_an_answer_with_a_part_that_stayed_open_has_both_on_the_page(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, "Both? And?")
    service.engine.get("get-new-queries")
    partly: dict[str, Any] = {
        "End": "answered",
        "Answer": ["Yes."],
        "Open": ["And?"],
        "Closest": [passage(1, "And?")],
    }
    give(service.engine, topic, "Both? And?", **partly)
    said = article(browser.get(f"/thread?topic={topic}").text)
    assert 'class="answer"' in said and "Helpful" in said and NOT_SAID not in said
    assert re.search(r"Still open: <[^>]+>And\?<", said) and "Closest passages:" in said and "Lamp 1" in said


def test_all_lists_say_who_said_a_source_and_a_passage_or_that_it_was_imported(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, "Both? And?")
    service.engine.get("get-new-queries")
    came, picture = "imported from <six>.metatree on 2026-11-23", "As ![x](http://a.example/p.png) shows."
    source = {"Node": "n", "Title": "notes.md", "Quote": picture, "Path": None, "Number": 1}
    partly: dict[str, Any] = {
        "End": "answered",
        "Answer": [picture],
        "Open": ["And?"],
        "Sources": [{**source, "SaidBy": came}, {**source, "Title": "own.md", "Number": 2}],
        "Closest": [passage(1, "And?", SaidBy="said by ann on 2026-05-03"), passage(2, "And?")],
    }
    assert give(service.engine, topic, "Both? And?", **partly).status_code == 200
    (found,) = thread(service, topic)
    assert [each.get("SaidBy") for each in found["Sources"]] == [came, None]
    assert [each["SaidBy"] for each in found["Closest"]] == ["said by ann on 2026-05-03", ""]
    page = article(browser.get(f"/thread?topic={topic}").text)
    assert page.count(">imported from &lt;six&gt;.metatree on 2026-11-23<") == 1
    assert page.count(">said by ann on 2026-05-03<") == 1 and page.count("said-by") == 2
    file = browser.get("/thread/export", params={"topic": topic}).text
    assert (
        f"```\n{picture}\n```" in file
        and "[1] notes.md (imported from \\<six>.metatree on 2026-11-23): " in file
    )
    assert "[2] own.md: “" in file and "(hall/lamp.md, lines 3–5) (said by ann on 2026-05-03)\n" in file
    assert "2. Lamp 2 (hall/lamp.md, lines 3–6)\n" in file


def test_an_answer_of_an_engine_that_says_nothing_of_its_end_is_an_answer(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, QUESTION)
    service.engine.get("get-new-queries")
    service.engine.answer(QUESTION, "Ann.", topic=topic)
    said = article(browser.get(f"/thread?topic={topic}").text)
    assert 'class="answer"' in said and "Helpful" in said and 'class="closest"' not in said


def test_what_is_hostile_in_a_passage_is_text(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, QUESTION)
    service.engine.get("get-new-queries")
    evil = passage(Node="javascript:alert(1)", Title=EVIL, Place=EVIL, Quote=f"{EVIL}\n\n{EVIL}")
    give(
        service.engine,
        topic,
        Answer=[EVIL],
        Open=[EVIL, QUESTION],
        Closest=[evil, {**evil, "Question": EVIL}],
    )
    said = article(browser.get(f"/thread?topic={topic}").text)
    assert "<script" not in said and "<img" not in said and 'onerror="' not in said
    assert said.count("&lt;script&gt;") >= 7
    assert all(
        link.startswith(("/node?", "/run?", "/thread?", "/thread/export?"))
        for link in re.findall(r'href="([^"]*)"', said)
    )


# chats


@contextmanager
def answering_open(service: Served, **given: Any) -> Iterator[None]:
    """Give one query back as open while the block runs."""

    def work() -> None:
        while not stop.is_set():
            batch = service.engine.get("get-new-queries").json()
            for item in batch["Queries"] or ():
                ((seq, text),) = item.items()
                assert give(service.engine, batch["Topic"], text, int(seq), **given).status_code == 200

    stop = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_is_told_that_nothing_answers_with_the_passages(service: Served, streamed: bool) -> None:
    client = client_of(service)
    evil = passage(2, Title="Lamp\n\n# 2", Quote=EVIL)
    with answering_open(service, Closest=[passage(), evil]):
        if streamed:
            chunks = list(say(client, QUESTION, stream=True))
            content = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            extra = next(c.metatree for c in chunks if hasattr(c, "metatree"))
        else:
            found = say(client, QUESTION)
            content, extra = found.choices[0].message.content, found.metatree
    link = rf"\[Lamp 1\]\({re.escape(service.url)}/node\?[^)]+#quoted\)"
    assert re.match(
        rf"{re.escape(NOT_SAID)} Closest passages:\n\n1\. {link} \(hall/lamp\.md, lines 3–5\)\n\n```\nLamp 1 has",
        content,
    )
    fences = [token.content for token in MarkdownIt().parse(content) if token.type == "fence"]
    assert fences == [
        "Lamp 1 has a bulb of nine watts.\n",
        " [x](javascript:alert(1)) ```\n",
    ]  # without markup
    assert extra["end"] == "closest" and extra["closest"] == [passage(), evil] and extra["sources"] == []


# databases of the version before


def test_a_database_of_the_version_before_keeps_its_answers_and_takes_ends(place: Path | str) -> None:
    ending = Ending("closest", [QUESTION], [passage()])

    async def answered(queue: Queue, seq: int, given: Ending | None) -> Query | None:
        await queue.add("T", "ann", QUESTION)
        assert await queue.claim("e") is not None
        became = await queue.answer("T", QUESTION, seq=seq, answer=["Ann."], ending=given, engine="e")
        assert became == ("accepted", seq)
        return await queue.query("T", seq)

    async def run() -> None:
        database = opened(place)
        await database.start()
        await answered(Queue(database), 1, None)
        for index in (
            "recommendation_withdraws",
            "recommendation_topic",
            "recommendation_by",
        ):
            await database.execute(f"DROP INDEX {index}")
        added = (
            *(("query", "ending"), ("topic", "title"), ("recommendation", "withdraws")),
            *(("service_use", "left_at"), ("service_key", "label")),
        )
        for table, column in (*added, *((each, "trees") for each in ("topic", "recommendation", "lookup"))):
            await database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        for table in (
            "service_tree",
            "service_tree_right",
            "service_group",
            "service_engine",
        ):
            await database.execute(f"DROP TABLE {table}")
        await database.execute("UPDATE service_schema SET version = ?", SERVICE.first)
        await database.close()
        database = opened(place)
        await database.start()
        queue = Queue(database)
        old, new = await queue.query("T", 1), await answered(queue, 2, ending)
        assert old is not None and old.answer == ["Ann."] and old.ending == Ending() and old.ending.answered
        assert new is not None and new.ending == ending and not new.ending.answered
        assert await database.rows("SELECT version FROM service_schema") == [(SERVICE.version,)]
        await database.close()

    asyncio.run(run())


def test_whoever_knows_what_the_sources_do_not_say_can_add_it_beside_the_question(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, QUESTION)
    assert "Do you know the answer?" not in browser.get(f"/thread?topic={topic}").text
    service.engine.get("get-new-queries")
    give(service.engine, topic)
    # A page that is open already is given the same, at the event of the answer.
    for path in (f"/thread?topic={topic}", f"/thread/question?topic={topic}&seq=1"):
        said = article(browser.get(path).text)
        assert "Do you know the answer? Write it here" in said and "kept in the memory word for word" in said
        form = said[said.index('value="Add Missing Info"') :]
        assert 'name="fragment"' in form and "<summary" not in form[: form.index("</form>")]
    assert said.index('value="Add Missing Info"') < said.index("<summary>What the search did")
    assert 'name="tree"' not in said, "there is one tree"
    sent = browser.send("/recommend", topic=topic, seq="1", type="Add Missing Info", fragment="Ann pays.")
    assert sent.status_code == 303
    shown = article(browser.get(sent.headers["location"].partition("#")[0]).text)
    assert "Added by User_1, just now: Ann pays." in " ".join(shown.split()), "at once"
    assert "answer added since" in shown and "Do you know more? Add it here" in shown
    assert shown.count(">Undo</button>") == 1
    (kept,) = service.engine.get("get-recommendations", After="0").json()
    assert (kept["type"], kept["query"], kept["fragment"]) == ("Add Missing Info", QUESTION, "Ann pays.")
    assert "Ann pays." in article(browser.get(f"/thread?topic={topic}").text)


def test_what_an_answer_does_not_say_is_written_into_a_box_of_its_own(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, QUESTION)
    service.engine.get("get-new-queries")
    service.engine.answer(QUESTION, "Ann pays.", topic=topic)
    said = article(browser.get(f"/thread?topic={topic}").text)
    assert "What the answer does not say" in said and "beside what the sources say" in said
    form = {"topic": topic, "seq": "1", "type": "Add Missing Info", "fragment": "Ann pays."}
    assert browser.send("/recommend", **form, missing=" ").status_code == 422, "the answer is not missing"
    assert browser.send("/recommend", **form, missing="Bob does in May.").status_code == 303
    (kept,) = service.engine.get("get-recommendations", After="0").json()
    assert (kept["type"], kept["fragment"]) == ("Add Missing Info", "Bob does in May.")


def test_of_a_long_passage_the_beginning_is_shown_first(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, QUESTION)
    service.engine.get("get-new-queries")
    long = passage(2, Quote="The lamp in the hall burns. " * 10, Title="Hall")
    give(service.engine, topic, Closest=[passage(1), long])
    said = article(browser.get(f"/thread?topic={topic}").text)
    assert said.count("More lines</span>") == 1 and '<span class="hidden"> of Hall</span>' in said
    assert said.count("The lamp in the hall burns.") == 10, (
        "its words are there once, and the page shows some"
    )
