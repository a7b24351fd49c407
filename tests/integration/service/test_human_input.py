"""A run that waits for the person: its question in the thread, the answer there, and engines that die meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.memory import learn
from metatree_agents.service.queue.human_input import Ask, forms
from metatree_memory_tools import build_tree

from metatree import Limits, Node, Tree, ask_person, load_run, tool
from metatree.notes.notes import memories
from metatree.notes.permissions import Permissions
from metatree.tools.tool import Tool

from .conftest import SECRETS, Client, Served, proof
from .test_engine import working
from .test_web import entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
LAMP = {"Key": "9", "Question": "Which lamp?", "Kind": "question"}
CALL = {"Key": "9", "Question": "May switch be called?", "Kind": "permission"}
QUOKKA = "What is the colour of the quokka?"
KEY = "What opens the attic door?"
ZOO = """
import os
from pathlib import Path
from metatree import Node, plugins, tool
from metatree_agents.cli import main

@tool(kind="exploratory", kinds=["file"], changes=True, reuse="run")
def look_up(node: Node) -> str:
    "Ask the zoo."
    with Path(os.environ["ZOO_CALLS"]).open("a") as calls:
        calls.write(node.id + "\\n")
    return "The colour of the quokka is brown."

plugins.register(plugins.TOOLS, "zoo", look_up)
main()
"""


def parked(service: Served, *asks: dict[str, str], text: str = "How do I switch it on?") -> dict[str, Any]:
    """Ask, claim, and park the query; return what the engine was given."""
    service.frontend.ask(text)
    batch: dict[str, Any] = service.engine.get("get-new-queries").json()
    body = {"Topic": "T", "Seq": 1, "Lease": batch["Lease"], "Questions": asks or (LAMP,)}
    assert service.engine.post("ask-person", body).status_code == 200
    return batch


def answer(service: Served, said: str, **more: Any) -> requests.Response:
    return service.frontend.post("answer-question", {"Topic": "T", "Seq": 1, "Answer": said, **more})


def thread(service: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.frontend.get("get-topic-thread", Topic="T").json()
    return found


def test_the_question_is_in_the_thread_and_the_answer_reaches_the_next_engine(service: Served) -> None:
    parked(service)
    (waiting,) = thread(service)
    assert waiting["Status"] == "Waiting" and waiting["Answer"] is None and waiting["Think"] is None
    (asked,) = waiting["Asked"]
    assert (asked["Question"], asked["Kind"], asked["Choices"], asked["Answer"]) == (
        "Which lamp?",
        "question",
        [],
        None,
    )
    assert len(asked["Since"]) == 19
    assert service.engine.get("get-new-queries").json()["Topic"] is None, (
        "the engine is free for other topics"
    )
    assert answer(service, "the red one", OnBehalfOf="John_Doe").status_code == 200
    assert thread(service)[0]["Asked"][0]["By"] == "John_Doe"
    batch = service.other_engine.get("get-new-queries").json()
    assert batch["Asked"]["1"] == [{**LAMP, "Answer": "the red one"}]
    assert service.other_engine.answer("How do I switch it on?", "press it").status_code == 200
    assert thread(service)[0]["Status"] == "Done"


def test_the_attempt_does_not_count_and_no_lease_ends_while_it_waits(serve: Serve) -> None:
    service = serve(lease_s=1.0, attempts=1)
    parked(service)
    time.sleep(1.1)
    assert service.engine.get("get-new-queries").json()["Topic"] is None
    answer(service, "the red one")
    assert service.engine.get("get-new-queries").json()["Queries"] == [{"1": "How do I switch it on?"}]


def test_what_is_asked_after_it_waits_too_since_it_may_speak_of_the_answer(service: Served) -> None:
    parked(service)
    assert service.frontend.ask("And off again?").json()["Seq"] == 2
    assert service.engine.get("get-new-queries").json()["Topic"] is None
    answer(service, "")
    assert len(service.engine.get("get-new-queries").json()["Queries"]) == 2
    assert thread(service)[0]["Asked"][0]["Answer"] == "", "declined"


def test_an_answer_that_comes_late_ends_the_waiting(service: Served) -> None:
    parked(service)
    service.frontend.ask("And off again?")
    assert service.other_engine.answer("How do I switch it on?", "press it").status_code == 200
    assert service.engine.get("get-new-queries").json()["Queries"] == [{"2": "And off again?"}]
    assert answer(service, "the red one").status_code == 409


def test_an_answer_to_another_query_of_the_topic_leaves_it_waiting(service: Served) -> None:
    service.frontend.ask("And off again?")
    service.frontend.ask("How bright is it?")
    service.frontend.ask("Which bulb fits?")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    service.engine.post("ask-person", {"Topic": "T", "Seq": 1, "Lease": lease, "Questions": [LAMP]})
    assert service.engine.answer("How bright is it?", "very", seq=2).status_code == 200
    assert service.engine.get("get-new-queries").json()["Topic"] is None
    assert answer(service, "the red one").status_code == 200
    given = service.engine.get("get-new-queries").json()["Queries"]
    assert given == [{"1": "And off again?"}, {"3": "Which bulb fits?"}]


def test_an_engine_whose_lease_has_ended_asks_nothing(service: Served) -> None:
    batch = parked(service)
    body = {"Topic": "T", "Seq": 1, "Lease": batch["Lease"], "Questions": [LAMP]}
    assert service.engine.post("ask-person", body).status_code == 409
    assert service.frontend.post("ask-person", body).status_code == 403
    assert service.engine.post("ask-person", {**body, "Questions": []}).status_code == 422


def test_who_may_answer_what(service: Served) -> None:
    service.user.ask("q", user="User_1")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    body = {"Topic": "T", "Seq": 1, "Lease": lease, "Questions": [CALL]}
    service.engine.post("ask-person", body)
    said = {"Topic": "T", "Seq": 1, "Answer": "yes"}
    assert service.other_user.post("answer-question", said).status_code == 404
    assert service.engine.post("answer-question", said).status_code == 403
    assert service.user.post("answer-question", {**said, "OnBehalfOf": "User_2"}).status_code == 403
    assert service.user.post("answer-question", {**said, "Topic": "other"}).status_code == 404
    assert service.user.post("answer-question", {**said, "Seq": 2}).status_code == 404
    assert service.user.post("answer-question", {**said, "Answer": "perhaps"}).status_code == 422
    assert service.user.post("answer-question", {**said, "Answer": "always"}).status_code == 403
    assert service.admin.post("answer-question", {**said, "Answer": "Always."}).status_code == 200
    assert service.admin.post("answer-question", {**said, "Id": 1, "Answer": "always"}).status_code == 200
    assert service.admin.post("answer-question", {**said, "Id": 1, "Answer": "no"}).status_code == 409
    assert service.admin.post("answer-question", {**said, "Id": 2}).status_code == 404


def test_two_questions_are_answered_by_their_numbers(service: Served) -> None:
    parked(service, LAMP, {**LAMP, "Key": "10", "Question": "Which room?"})
    assert answer(service, "red").status_code == 409
    assert answer(service, "red", Id=1).status_code == 200
    assert thread(service)[0]["Status"] == "Waiting"
    assert answer(service, "the hall").status_code == 200, "the one that is left"
    assert thread(service)[0]["Status"] == "Open"


def test_a_waiting_caller_is_notified_once_when_a_query_begins_to_wait_for_a_person(serve: Serve) -> None:
    service, other = serve(answer_timeout_s=20.0), serve()
    service.frontend.ask("How do I switch it on?")
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(service.frontend.get("check-query", Topic="T", Seq=1).json())
    )
    waiting.start()
    lease = other.engine.get("get-new-queries").json()["Lease"]
    time.sleep(0.3)
    other.engine.post("ask-person", {"Topic": "T", "Seq": 1, "Lease": lease, "Questions": [LAMP]})
    waiting.join(60)
    assert found[0]["Status"] == "Waiting" and found[0]["Asked"][0]["Question"] == "Which lamp?"
    before = time.monotonic()
    assert serve(answer_timeout_s=0.6).frontend.get("check-query", Topic="T", Seq=1).json()["Answer"] is None
    assert time.monotonic() - before >= 0.6, "a caller that asks in a loop would never rest"


def test_the_stream_tells_the_question_and_what_was_answered(service: Served) -> None:
    parked(service)
    with requests.get(
        f"{service.url}/api/events",
        params={**proof("Frontend_1", SECRETS["Frontend_1"][1]), "Topic": "T", "Seq": "1"},
        stream=True,
        timeout=120,
    ) as stream:
        told, names, name = [], [], ""
        for line in map(bytes.decode, stream.iter_lines()):
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
                names.append(name)
            if line.startswith("data: ") and name == "question":
                told.append(json.loads(line.removeprefix("data: ")))
                if len(told) == 1:
                    assert answer(service, "the red one").status_code == 200
                else:
                    service.engine.answer("How do I switch it on?", "press it")
    assert [one["Answer"] for one in told] == [None, "the red one"]
    assert names[-1] == "answer" and "step" in names


def test_an_administrator_sees_that_it_waits_and_cannot_take_it_from_nobody(service: Served) -> None:
    parked(service)
    overview = service.admin.get("admin/overview").json()
    assert (overview["Waiting"], overview["Open"], overview["Leases"]) == (1, 0, [])
    assert [(one["Status"], one["Engine"]) for one in overview["Queries"]] == [("Waiting", "Inference_1")]
    assert service.admin.post("admin/release", {"Topic": "T"}).status_code == 404
    assert thread(service)[0]["Status"] == "Waiting"
    figures = requests.get(
        f"{service.url}/metrics", params=proof("Admin_1", SECRETS["Admin_1"][1]), timeout=30
    )
    assert 'metatree_queries{state="waiting"} 1.0' in figures.text


def test_a_chat_shows_what_its_answer_waits_for(serve: Serve) -> None:
    service = serve(chat_wait_s=0.3)
    key = service.keys["User_1"]

    def chat() -> requests.Response:
        return requests.post(
            f"{service.url}/v1/chat/completions",
            json={"model": "metatree", "messages": [{"role": "user", "content": "How do I switch it on?"}]},
            headers={"Authorization": f"Bearer {key}"},
            timeout=120,
        )

    assert chat().status_code == 503
    batch = service.engine.get("get-new-queries").json()
    body = {"Topic": batch["Topic"], "Seq": 1, "Lease": batch["Lease"], "Questions": [LAMP]}
    service.engine.post("ask-person", body)
    assert "Which lamp?" in chat().json()["choices"][0]["message"]["content"]
    given = {"Topic": batch["Topic"], "Seq": 1, "Answer": "the red one"}
    assert service.user.post("answer-question", given).status_code == 200
    assert (
        service.engine.answer("How do I switch it on?", "press it", topic=batch["Topic"]).status_code == 200
    )
    said = service.user.get("check-query", Topic=batch["Topic"], Seq=1).json()
    assert said["Answer"] == ["press it"]


def test_a_page_gets_a_form() -> None:
    asks = [Ask("1", "Which lamp?", "question", 0.0, "red", "Ann"), Ask("2", "May it?", "permission", 61.0)]
    (form,) = forms("T", 3, asks)
    assert (form.number, form.question, form.since, form.choices) == (
        2,
        "May it?",
        "1970-01-01T00:01:01",
        ("yes", "no"),
    )
    assert forms("T", 3, asks, admin=True)[0].choices == ("yes", "always", "no")
    assert forms("T", 3, asks[:1]) == []


# real engines


@pytest.fixture
def small(tmp_path: Path) -> Path:
    place = tmp_path / "source"
    place.mkdir()
    (place / "zoo.md").write_text("# Animals\n\nThe quokka has a colour.\n")
    return place


def zoo(calls: list[str], **given: Any) -> Tool:
    def look_up(node: Node) -> str:
        """Ask the zoo."""
        calls.append(node.id)
        return "The colour of the quokka is brown."

    given.setdefault("reuse", "run")
    made: Tool = tool(kind="exploratory", kinds=["file"], changes=True, **given)(look_up)
    return made


@pytest.mark.parametrize(("said", "called"), [("yes", 1), ("no", 0)])
def test_a_tool_that_changes_something_asks_in_the_thread(
    serve: Serve, small: Path, said: str, called: int
) -> None:
    service, calls = serve(answer_timeout_s=20.0), list[str]()
    parts = {"tools": [zoo(calls)], "permit": ask_person}
    with build_tree(small) as tree, working(service, tree, parts=parts):
        service.frontend.ask(QUOKKA)
        waiting = service.frontend.get("check-query", Topic="T", Seq=1).json()
        assert waiting["Asked"][0]["Question"].startswith("May look_up be called with {} at zoo.md")
        assert waiting["Asked"][0]["Choices"] == ["yes", "no"]
        assert calls == []
        assert answer(service, said).status_code == 200
        found = service.frontend.get("check-query", Topic="T", Seq=1).json()
        assert ("brown" in " ".join(found["Answer"])) is bool(called)
        assert any("person" in line for line in found["Think"])
        assert len(calls) == called
        assert Permissions(tree.memory).all() == []


def test_three_who_ask_the_same_have_a_tool_that_changes_something_called_three_times(
    serve: Serve, small: Path
) -> None:
    service, calls = serve(answer_timeout_s=20.0), list[str]()
    parts = {"tools": [zoo(calls, reuse=None)], "permit": lambda *_: True}
    with build_tree(small) as tree, working(service, tree, parts=parts):
        for topic in ("T1", "T2", "T3"):
            service.frontend.ask(QUOKKA, topic=topic)
        for topic in ("T1", "T2", "T3"):
            found = service.frontend.get("check-query", Topic=topic, Seq=1).json()
            assert "brown" in " ".join(found["Answer"])
    assert calls == ["zoo.md"] * 3


def test_a_permission_counts_only_where_it_was_asked_for(serve: Serve, small: Path, tmp_path: Path) -> None:
    """An engine with another tree, which does not know the run, asks again; what a person knows it takes."""
    service, calls = serve(answer_timeout_s=20.0), list[str]()
    parts = {"tools": [zoo(calls)], "permit": ask_person, "fallbacks": [ask_person]}
    with build_tree(small, out=tmp_path / "one") as one, build_tree(small, out=tmp_path / "two") as two:
        with working(service, one, parts=parts):
            service.frontend.ask(QUOKKA)
            service.frontend.get("check-query", Topic="T", Seq=1)
        answer(service, "yes")
        with working(service, two, parts=parts):
            service.frontend.get("check-query", Topic="T", Seq=1)
            asked = thread(service)[0]["Asked"]
            assert [(each["Kind"], each["Answer"]) for each in asked] == [
                ("permission", "yes"),
                ("permission", None),
            ]
            assert calls == []
        answer(service, "no")
        with working(service, two, parts=parts):
            service.frontend.get("check-query", Topic="T", Seq=1)
            assert thread(service)[0]["Asked"][-1]["Question"] == QUOKKA
        answer(service, "It is brown.")
        with build_tree(small, out=tmp_path / "three") as three:
            with working(service, three, parts={"fallbacks": [ask_person]}):
                found = service.frontend.get("check-query", Topic="T", Seq=1).json()
            assert found["Answer"] == ["It is brown."]
    assert calls == []


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ZOO, *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )


def until(process: subprocess.Popen[str], text: str) -> str:
    """Read what a process says until a line has a text; return the rest of the line."""
    said = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        if text in line:
            return line.partition(text)[2].strip()
    raise AssertionError("".join(said))


def test_engine_and_server_are_killed_while_runs_wait_and_others_go_on_where_they_asked(
    small: Path, tmp_path: Path
) -> None:
    """Two runs wait, one for a permission, one for what only a person knows; everything dies; both go on."""
    calls, running = tmp_path / "calls.txt", list[subprocess.Popen[str]]()

    def served() -> str:
        running.append(
            start("serve", "--source", str(small), "--port", "0", "--no-engine", "--answer-timeout", "1")
        )
        return until(running[-1], "listening on ")

    def worker(url: str, secret: str) -> subprocess.Popen[str]:
        given = ["--server", url, "--user", "Inference_1", "--human", "--source", str(small)]
        running.append(start("service", "worker", *given, METATREE_SECRET=secret, ZOO_CALLS=str(calls)))
        return running[-1]

    try:
        secret, front = added(small, "Inference_1", "engine"), added(small, "Frontend_1", "frontend")
        url = served()
        engine = worker(url, secret)
        frontend = Client(url, "Frontend_1", front)
        frontend.ask(QUOKKA, topic="A")
        assert waits(frontend, "A")["Kind"] == "permission"
        frontend.ask(KEY, topic="B")
        while (asked := waits(frontend, "B"))["Kind"] == "permission":
            frontend.post("answer-question", {"Topic": "B", "Seq": 1, "Id": asked["Id"], "Answer": "no"})
        assert asked["Question"] == KEY
        for process in (engine, running[0]):
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        with Tree.open(small) as tree:
            before = {run: load_run(run, tree=tree) for run in _runs(tree)}
        url = served()
        frontend = Client(url, "Frontend_1", front)
        said = {"A": "yes", "B": "The brass key in the hall."}
        for topic, text in said.items():
            asked = waits(frontend, topic)
            body = {"Topic": topic, "Seq": 1, "Id": asked["Id"], "Answer": text, "OnBehalfOf": "John_Doe"}
            assert frontend.post("answer-question", body).status_code == 200
        assert not calls.exists(), "no engine is there"
        worker(url, secret)
        found: dict[str, Any] = {"A": {}, "B": {}}
        for topic in said:
            while not found[topic].get("Answer"):
                found[topic] = frontend.get("check-query", Topic=topic, Seq=1).json()
        assert "brown" in " ".join(found["A"]["Answer"])
        assert found["B"]["Answer"] == ["The brass key in the hall."]
        assert len(calls.read_text().splitlines()) == 1
    finally:
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
    with Tree.open(small) as tree:
        for run, earlier in before.items():
            after = load_run(run, tree=tree)
            told = [(entry.event, entry.node) for entry in earlier.trace]
            assert [(entry.event, entry.node) for entry in after.trace][: len(told)] == told
            assert after.trace[len(told)].event == "person"
            assert after.ended == "answered"


def added(source: Path, name: str, role: str) -> str:
    """Add a user to the service of a folder; return its secret."""

    async def add() -> str:
        database = SqliteDatabase.open(source / ".metatree" / "service.db")
        secret = await Users(database).add(name, role)
        await database.close()
        return secret

    (source / ".metatree").mkdir(exist_ok=True)
    return asyncio.run(add())


def waits(frontend: Client, topic: str) -> dict[str, Any]:
    """Return what a query asks, once it asks something."""
    while True:
        found = frontend.get("check-query", Topic=topic, Seq=1).json()
        if found["Status"] == "Waiting" and (
            asks := [one for one in found["Asked"] if one["Answer"] is None]
        ):
            asked: dict[str, Any] = asks[0]
            return asked


def _runs(tree: Tree) -> list[str]:
    from metatree import runs

    return [each.run_id for each in runs(tree=tree)]


@pytest.mark.parametrize(
    ("person", "said", "ended"),
    [
        ("It is brown.", ["It is brown."], "person answered"),
        ("", ["No answer was found before the search reached its limit."], "person declined"),
    ],
)
def test_a_search_at_its_limit_asks_in_the_thread_too(
    serve: Serve, small: Path, person: str, said: list[str], ended: str
) -> None:
    service, limits = serve(answer_timeout_s=20.0), Limits(reads=0)
    with build_tree(small) as tree:
        with working(service, tree, parts={"fallbacks": [ask_person]}, limits=limits):
            service.frontend.ask(QUOKKA)
            waiting = service.frontend.get("check-query", Topic="T", Seq=1).json()
            assert waiting["Status"] == "Waiting" and waiting["Answer"] is None
            assert [(one["Question"], one["Kind"]) for one in waiting["Asked"]] == [(QUOKKA, "question")]
            assert answer(service, person).status_code == 200
            found = service.frontend.get("check-query", Topic="T", Seq=1).json()
        assert found["Answer"] == said
        assert found["Think"][-1] == f"{ended}: {QUOKKA}"
        assert [one["Title"] for one in found["Sources"]] == (["a person"] if person else [])
        with working(service, tree, limits=limits):
            service.frontend.ask(QUOKKA, topic="U")
            found = service.frontend.get("check-query", Topic="U", Seq=1).json()
            assert found["Status"] == "Done", "nobody is asked where nobody may be"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("by_page", [False, True])
def test_what_a_person_answers_is_remembered_as_theirs_and_for_others_only_where_sharing_is_open(
    serve: Serve, small: Path, shared: bool, by_page: bool
) -> None:
    service = serve(answer_timeout_s=30.0, claim_timeout_s=5.0, shared=shared)
    browser = entered(service, "User_1")

    def found(client: Client, text: str, topic: str) -> dict[str, Any]:
        assert client.ask(text, topic=topic, user=client.name).ok
        said: dict[str, Any] = client.get("check-query", Topic=topic, Seq=1).json()
        return said

    with build_tree(small) as tree:
        with working(service, tree, parts={"fallbacks": [ask_person]}):
            waiting = found(service.user, "Who feeds the quokka?", "T")
            assert waiting["Status"] == "Waiting"
            form = browser.get("/thread?topic=T").text
            assert ("searches of others find it too" in form) == shared
            assert ("To share it, press Helpful" in form) == (not shared)
            if by_page:
                fields = {"topic": "T", "seq": "1", "number": "1", "said": "Bea feeds it at dawn."}
                assert browser.send("/answer", **fields).status_code == 303
            else:
                body = {"Topic": "T", "Seq": 1, "Answer": "Bea feeds it at dawn."}
                assert service.user.post("answer-question", body).ok
            assert service.user.get("check-query", Topic="T", Seq=1).json()["Answer"] == [
                "Bea feeds it at dawn."
            ]
            page = browser.get("/thread?topic=T").text
            shown = page.partition('class="actions"')[0]
            assert shown.count("Bea feeds it at dawn.") == 2, "as the answer, and as its quote"
            assert "said by User_1" in shown
            assert bool(
                re.search("Kept for searches of your questions alone, .*Helpful shares it", page)
            ) == (not shared)
            assert ("Add Missing Info, says User_1" in page) == shared
            marks = re.findall(r'href="#(source-1-\d+)"', shown)
            assert all(f'id="{mark}"' in shown for mark in marks)
            own = found(service.user, "who feeds the quokka", "own")
            assert "Bea feeds it at dawn." in own["Answer"], "the person is not asked the same twice"
            (source,) = re.findall(
                r"<li id=\"source-1-1.*?</li>", browser.get("/thread?topic=own").text, re.S
            )
            said = re.search(
                r'class="meta said-by">added by User_1, 20[0-9-]{8}, to the question <a href="([^"]+)"',
                source,
            )
            assert "said by User_1" in source and said and said[1] == "/thread?topic=T"
        assert "Bea feeds it at dawn." in browser.get("/memories").text
        assert "Bea" not in entered(service, "User_2").get("/memories").text

        async def once() -> None:
            async with ServiceClient(service.url, "Inference_1", SECRETS["Inference_1"][1]) as client:
                while await learn(client, tree):
                    pass

        asyncio.run(once())
        with working(service, tree):
            own = found(service.user, "Who feeds the quokka?", "again")
            assert "Bea feeds it at dawn." in own["Answer"]
            others = found(service.other_user, "Who feeds the quokka?", "others")
            assert ("Bea" in str(others["Answer"])) == shared
            kept = [node.provenance["who"] for node in memories(tree)]
            assert kept == (["User_1"] if shared else [])
            (said,) = re.findall(r'name="number" value="(\d+)"', browser.get("/memories").text)
            assert browser.send("/memories/undo", number=said).status_code == 303
            asyncio.run(once())
            assert memories(tree) == []
            gone = found(service.user, "Who feeds the quokka?", "gone")
            assert "Bea" not in str(gone["Answer"])
