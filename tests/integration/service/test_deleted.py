"""What is left of a topic that was deleted: nothing that another asker, or an engine, is given."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.service.engine.answering import answer_query, run_id_of
from metatree_agents.service.queue.models import EngineAnswer, EngineQuery
from metatree_memory_tools import build_tree

from metatree import Tree, runs

from .conftest import Served, opened
from .test_web import entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
WHO = "Which team approves refunds?"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "refunds.md").write_text("# Refunds\n\nRefunds are approved by the zebra team.\n")
    with build_tree(tmp_path / "source") as made:
        yield made


def ask(service: Served, user: str) -> dict[str, Any]:
    """Ask, and return what an engine is given."""
    assert service.frontend.ask(WHO, user=user).json()["Seq"] == 1
    batch: dict[str, Any] = service.engine.get("get-new-queries").json()
    return batch


def delete(service: Served, user: str) -> None:
    assert service.frontend.call("DELETE", "topic", OnBehalfOf=user, Topic="T").status_code == 200


def test_the_same_question_in_a_later_topic_of_the_same_name_has_a_run_of_its_own(
    service: Served, tree: Tree
) -> None:
    def searched(user: str) -> EngineAnswer:
        batch = ask(service, user)
        asked = EngineQuery("T", 1, WHO, {"Region": user}, run=batch["Runs"]["1"])
        said = asyncio.run(answer_query(tree, asked, parts={}))
        delete(service, user)
        return said

    assert "zebra" in " ".join(searched("Ann").answer) and "zebra" in " ".join(searched("Bob").answer)
    contexts = [(each.given or {}).get("context") for each in runs(tree=tree)]
    assert sorted(map(str, contexts)) == ["Region: Ann", "Region: Bob"]


def test_the_run_of_a_query_keeps_its_name_for_the_engine_that_takes_over(service: Served) -> None:
    first = ask(service, "Ann")
    service.engine.post("hand-back", {"Topic": "T", "Lease": first["Lease"]})
    assert service.other_engine.get("get-new-queries").json()["Runs"] == first["Runs"]


def test_a_query_without_a_name_for_its_run_has_a_hash() -> None:
    """Of an older service, or asked with an older version."""
    assert run_id_of(EngineQuery("T", 1, "Who approves refunds?", {})) == "query-5391e68cf1bdfd77d8fc"


@pytest.mark.parametrize("page", [False, True])
def test_a_waiting_caller_is_notified_of_a_deletion_also_by_another_process(serve: Serve, page: bool) -> None:
    service, other = serve(answer_timeout_s=25.0), serve()
    for deleting in (service, other):
        browser = entered(deleting, "User_1")
        csrf = browser.csrf()
        service.frontend.ask(WHO, user="User_1")
        found: list[int] = []
        waiting = threading.Thread(
            target=lambda found=found: found.append(
                service.frontend.get("check-query", Topic="T", Seq=1).status_code
            )
        )
        waiting.start()
        threading.Event().wait(0.3)
        assert not found
        if page:
            assert browser.post("/topic/delete", {"csrf": csrf, "topic": "T"}).status_code == 303
        else:
            delete(deleting, "User_1")
        waiting.join(60)
        assert found == [404]


@pytest.mark.parametrize("route", ["check-query", "events", "chat", "chat stream"])
def test_who_waits_is_not_given_the_answer_of_a_later_topic_of_the_same_name(
    serve: Serve, place: Path | str, route: str
) -> None:
    """It may be somebody else's."""
    service = serve(answer_timeout_s=25.0, chat_wait_s=25.0)
    chat: dict[str, Any] = {
        "model": "metatree",
        "messages": [{"role": "user", "content": WHO}],
        "stream": "stream" in route,
    }
    given = {"Topic": "T", "Seq": 1}

    def wait() -> str:
        if route.startswith("chat"):
            key = {"Authorization": f"Bearer {service.keys['Frontend_1']}"}
            body = {**chat, "user": "Ann", "metadata": {"topic": "T"}}
            return requests.post(
                f"{service.url}/v1/chat/completions", json=body, headers=key, timeout=30
            ).text
        return service.frontend.get(route, **given).text

    if not route.startswith("chat"):
        service.frontend.ask(WHO, user="Ann")
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(wait()))
    waiting.start()
    while not service.admin.get("admin/overview").json()["Connected"]["Callers"]:
        threading.Event().wait(0.02)
    service.admin.get("admin/overview")  # meanwhile it has read what it waits for
    assert remade(place) == 1
    waiting.join(60)
    assert found and "of Bob" not in found[0]
    assert ("event: gone" if route == "events" else "topic") in found[0] or "there is no query" in found[0]


def remade(place: Path | str) -> int:
    """Put the answered query of another user where a query is, in one statement; return how many there were."""

    async def run() -> int:
        database = opened(place)
        await database.start()
        sql = "UPDATE query SET run = ?, text = ?, status = 'Done', answer = ?, at = ?, answered_at = ?"
        now = database.clock()
        done = await database.execute(sql, "query-of-bob", "of Bob?", '["of Bob"]', now, now)
        await database.close()
        return done

    return asyncio.run(run())


def test_an_engine_is_not_given_what_only_a_deleted_topic_wished_to_look_up(service: Served) -> None:
    service.frontend.ask(WHO, user="Ann")
    service.frontend.ask(WHO, topic="stays", user="Bob")
    for topic, fragment in (("T", "hers alone"), ("T", "of both"), ("stays", "of both")):
        wish = {"Topic": topic, "Seq": 1, "Fragment": fragment}
        assert service.frontend.post("add-lookup", wish).status_code == 200
    delete(service, "Ann")
    assert service.engine.get("get-new-lookup").json()["Fragment"] == "of both"
    assert service.engine.get("get-new-lookup").status_code == 404
