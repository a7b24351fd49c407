"""One service for several trees: who may ask which, at every route and page; engines that have some of them."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

import pytest
import requests
from metatree_agents.cli._main import run
from metatree_agents.cli.commands.service.worker import unlike
from metatree_agents.service import web
from metatree_agents.service.accounts.tree_rights import ALL, MOST, UNNAMED, TreeRights
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import ServiceDatabase, SqliteDatabase
from metatree_agents.service.database.servers import announced
from metatree_agents.service.queue.queue import Queue
from metatree_agents.service.settings import ServiceSettings
from metatree_memory_tools import build_tree

from metatree import Tree
from metatree.errors import UserError

from .conftest import Client, Served, opened, served
from .test_engine import working
from .test_openai import client_of
from .test_pages import buttons
from .test_roles import ROUTES
from .test_web import Browser, asked, entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
T = TypeVar("T")
TEXTS = {
    "handbook": {"leave.md": "# Leave\n\nEmployees have thirty days of leave in a year.\n"},
    "recipes": {"soup.md": "# Soup\n\nThe secret of the soup is one spoon of smoked paprika.\n"},
}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Tree]]:
    with ExitStack() as stack:
        made = {}
        for name, files in TEXTS.items():
            folder = tmp_path_factory.mktemp(name)
            for file, text in files.items():
                (folder / file).write_text(text)
            made[name] = stack.enter_context(build_tree(folder))
        yield made


def add_trees(service: Served, *names: str) -> None:
    for name in names or TEXTS:
        assert service.admin.post("admin/set-tree", {"Name": name}).ok


def done(place: Path | str, what: Callable[[ServiceDatabase], Awaitable[T]]) -> T:
    async def do() -> T:
        database = opened(place)
        await database.start()
        try:
            return await what(database)
        finally:
            await database.close()

    return asyncio.run(do())


def right(service: Served, tree: str, who: str, *, may: bool = True) -> None:
    said = service.admin.post("admin/set-tree-right", {"Tree": tree, "Who": who, "May": may})
    assert said.ok, said.text


def names_of(client: Client, **given: str) -> list[str]:
    return [each["Name"] for each in client.get("trees", **given).json()]


# rights


def test_a_tree_is_for_administrators_until_somebody_is_let_in(serve: Serve, place: Path | str) -> None:
    service = serve()
    assert names_of(service.user) == []
    assert service.user.ask("q", topic="before", user="User_1").ok
    done(place, lambda database: TreeRights(database).add("handbook"))  # as `metatree serve handbook=…` does
    add_trees(service)
    assert names_of(service.admin) == ["handbook", "recipes"] and names_of(service.user) == []
    refused = service.user.ask("q", topic="none", user="User_1")
    assert refused.status_code == 403 and "lets people in" in refused.json()["detail"]
    right(service, "handbook", "everybody")
    assert service.admin.post("admin/set-group", {"Group": "cooks", "Members": ["User_1"], "Member": True}).ok
    right(service, "recipes", "group:cooks")
    assert names_of(service.user) == ["handbook", "recipes"] and names_of(service.other_user) == ["handbook"]
    assert names_of(service.frontend) == ["handbook"]
    assert names_of(service.frontend, OnBehalfOf="User_1") == ["handbook", "recipes"]
    assert service.user.get("trees", OnBehalfOf="User_2").status_code == 403
    shut = service.other_user.ask("q", topic="soup", user="User_2", Trees=["recipes"])
    none = service.other_user.ask("q", topic="soup", user="User_2", Trees=["nothing"])
    assert shut.status_code == none.status_code == 403
    assert shut.json()["detail"].replace("recipes", "x") == none.json()["detail"].replace("nothing", "x")
    for client, body in ((service.frontend, "User_2"), (service.other_user, "User_2")):
        assert client.ask("q", topic="all", user=body).ok, "those that they may ask, where they name none"
    other = service.other_user.ask("q", topic="all", user="User_2", Trees=["recipes"])
    assert other.status_code == 403
    assert service.user.ask("q", topic="both", user="User_1").ok
    changed = service.user.ask("q", topic="both", user="User_1", Trees=["handbook"])
    assert changed.status_code == 409 and "handbook, recipes" in changed.json()["detail"]
    assert service.user.ask("q", topic="before", user="User_1").status_code == 409, (
        "of before trees had names"
    )
    assert service.user.get("get-topic-thread", Topic="before").ok


def test_other_trees_are_named_only_to_who_may_ask_another(serve: Serve) -> None:
    service = serve()
    add_trees(service)
    right(service, "handbook", "everybody")
    browser = entered(service, "User_1")
    thread = f"/thread?topic={asked(browser)}"
    page = browser.get(thread).text
    assert "Asks handbook" in page and "To ask other trees" not in page
    right(service, "recipes", "everybody")
    assert "This topic asks handbook. To ask other trees" in browser.get(thread).text
    assert "To ask other trees" not in browser.get(f"/thread?topic={asked(browser)}").text, "it asks all"


def test_a_service_of_one_tree_without_a_name_gets_none(
    serve: Serve, place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    service = serve()
    assert service.user.ask("q", topic="T", user="User_1").ok
    refused = service.admin.post("admin/set-tree", {"Name": "handbook"})
    assert refused.status_code == 409 and "metatree serve handbook=FOLDER" in refused.json()["detail"]
    add = ["service", "trees", "add", "handbook", "--database", str(place)]
    assert run(add) == 2 and "1 topic searched it" in capsys.readouterr().err
    assert service.user.ask("q", topic="T", user="User_1").ok, "nobody was locked out"
    assert service.user.call("DELETE", "topic", OnBehalfOf="User_1", Topic="T").ok

    async def at_work(database: ServiceDatabase) -> int:
        async with announced(database, service.url):
            return await asyncio.to_thread(run, add)

    assert done(place, at_work) == 2 and "it is served now" in capsys.readouterr().err
    assert run(add) == 0, "nothing was asked, and nothing is served"


def test_a_tree_that_was_added_by_mistake_is_taken_out_again(serve: Serve, place: Path | str) -> None:
    service = serve(claim_timeout_s=0.0)
    add_trees(service, "handbook")
    assert service.admin.post("admin/remove-tree", {"Name": "cookbook"}).status_code == 404
    assert service.user.ask("q", topic="T", user="User_1").status_code == 403
    assert service.admin.post("admin/remove-tree", {"Name": "handbook"}).ok
    assert service.user.ask("q", topic="T", user="User_1").ok
    assert service.engine.get("get-new-queries").json()["Topic"] == "T", "an engine without names has it"

    done(place, lambda database: TreeRights(database).add("handbook"))
    right(service, "handbook", "User_1")
    assert service.user.ask("q", topic="of the handbook", user="User_1").ok
    assert service.engine.get("get-new-queries", Trees="handbook").json()["Topic"]
    used = service.admin.post("admin/remove-tree", {"Name": "handbook"})
    assert used.status_code == 409
    assert "1 topic searches it" in used.json()["detail"] and "Inference_1 had it" in used.json()["detail"]
    assert run(["service", "trees", "remove", "handbook", "--database", str(place)]) == 2
    assert run(["service", "trees", "remove", "handbook", "--force", "--database", str(place)]) == 0
    assert names_of(service.admin) == []
    overview = service.admin.get("admin/overview").json()
    assert (overview["Open"], overview["Failed"]) == (0, 1), "nobody waits for what cannot come"
    assert service.user.get("get-topic-thread", Topic="of the handbook").status_code == 403
    assert service.admin.get("get-topic-thread", Topic="of the handbook").ok
    done(place, lambda database: TreeRights(database).add("recipes"))
    right(service, "recipes", "everybody")
    assert service.user.get("get-topic-thread", Topic="of the handbook").status_code == 403, (
        "a new tree never has the number of one that something was asked of"
    )


def test_nobody_gets_a_right_whom_nobody_knows(
    serve: Serve, place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    service = serve()
    add_trees(service)
    trees = ["service", "trees"]
    at = ["--database", str(place)]
    for who in ("Anna", "group:coks"):
        assert run([*trees, "allow", "recipes", who, *at]) == 2
        refused = service.admin.post("admin/set-tree-right", {"Tree": "recipes", "Who": who, "May": True})
        assert refused.status_code == 422
    assert "nobody is in a group 'coks'" in capsys.readouterr().err
    assert service.admin.get("admin/trees").json()["Trees"][1]["May"] == []
    assert run([*trees, "allow", "recipes", "Anna", "--anyway", *at]) == 0
    assert names_of(service.frontend, OnBehalfOf="Anna") == ["recipes"]


def test_who_is_denied_a_tree_and_still_may_ask_it_is_named(
    serve: Serve, place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    service = serve()
    add_trees(service)
    at = ["--database", str(place)]
    assert run(["service", "trees", "join", "cooks", "User_1", *at]) == 0
    assert run(["service", "trees", "allow", "recipes", "group:cooks", "User_2", *at]) == 0
    capsys.readouterr()
    assert run(["service", "trees", "deny", "recipes", "User_1", *at]) == 1
    said = capsys.readouterr().err
    assert "User_1 had no right of their own; User_1 may still ask it by group:cooks" in said
    assert "`metatree service trees leave cooks User_1`" in said
    assert run(["service", "trees", "deny", "recipes", "User_2", *at]) == 0
    assert run(["service", "trees", "deny", "recipes", "User_2", *at]) == 1
    assert names_of(service.user) == ["recipes"] and names_of(service.other_user) == []


def test_a_start_says_which_trees_of_the_service_it_does_not_have(tmp_path: Path) -> None:
    for name in TEXTS:
        (tmp_path / name).mkdir()
        for file, text in TEXTS[name].items():
            (tmp_path / name / file).write_text(text)
    where = tmp_path / "service.db"
    named = start_once(tmp_path, where, "handbook=handbook", "recipes=recipes")
    assert "other trees" not in named and "have names" not in named and "before trees had names" not in named
    done(where, lambda database: Queue(database).add("T", "Ann", "q"))
    assert "users login admin" in named
    less = start_once(tmp_path, where, "handbook=handbook")
    assert "which are not served here (recipes)" in less and "1 of the topics are of before" in less
    assert "prints a link that logs admin in" in less, "a later start says how to get in, too"
    without = start_once(tmp_path, where, "--source", "handbook")
    assert "have names (handbook, recipes), so nobody can ask" in without and "trees remove" in without
    assert unlike(["handbook"], ["handbook"]) == "" and unlike([], []) == ""
    assert "too: a question to one of them" in unlike(["handbook"], ["handbook", "recipes"])
    assert "metatree service worker handbook=FOLDER" in unlike([], ["handbook"])


def start_once(folder: Path, where: Path, *given: str) -> str:
    """Start a server, stop it when it listens, and return what it said."""
    command = [sys.executable, "-c", "from metatree_agents.cli import main; main()", "serve", *given]
    command += ["--port", "0", "--no-engine", "--database", str(where)]
    said = folder / "said"
    with said.open("w") as out, subprocess.Popen(command, cwd=folder, stdout=out, stderr=out) as server:
        while server.poll() is None and "listening on" not in said.read_text():
            time.sleep(0.05)
        server.terminate()
    return said.read_text()


def test_a_user_that_is_taken_out_leaves_no_right_behind(place: Path | str) -> None:
    async def rights_of_another() -> tuple[int, int]:
        database = opened(place)
        await database.start()
        try:
            users, rights = Users(database), TreeRights(database)
            await users.add("Ann", "user")
            one, two = await rights.add("a"), await rights.add("b")
            await rights.change("a", "Ann", may=True)
            await rights.set_members("g", ["Ann"], joined=True)
            await rights.change("b", "group:g", may=True)
            before = await rights.of("Ann")
            assert before == UNNAMED | one.bit | two.bit
            await users.remove("Ann")
            await users.add("Ann", "user")
            return before, await rights.of("Ann")
        finally:
            await database.close()

    assert asyncio.run(rights_of_another())[1] == UNNAMED


def test_as_many_trees_as_there_are_bits(tmp_path: Path) -> None:
    async def filled() -> None:
        database = SqliteDatabase.open(tmp_path / "service.db")
        rights = TreeRights(database)
        for number in range(MOST):
            await rights.add(f"t{number}")
            await rights.change(f"t{number}", "everybody", may=True)
        assert await rights.of("Ann") == ALL
        queue = Queue(database)
        await queue.add("T", "Ann", "q", trees=ALL)
        assert await queue.claim("e", trees=ALL & ~2) is None
        claim = await queue.claim("e", trees=ALL)
        assert claim is not None and claim.trees == ALL
        with pytest.raises(UserError, match="at most 62"):
            await rights.add("one-more")
        for name in ("", "Upper", "a b", "a,b", "-a", "a" * 41):
            with pytest.raises(UserError, match="no name of a tree"):
                await rights.add(name)
        await database.close()

    asyncio.run(filled())


TOPIC_ROUTES = [
    each
    for each, (roles, given, body) in ROUTES.items()
    if "user" in roles and "theirs" in (given.get("Topic"), (body or {}).get("Topic"))
]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, trees: dict[str, Tree]) -> Iterator[Served]:
    """A service where User_1 asked both trees, had an answer of the secret one, and lost the right to that."""
    settings = ServiceSettings(claim_timeout_s=0.0, answer_timeout_s=0.2)
    with served(tmp_path_factory.mktemp("closed") / "service.db", settings, trees=trees) as running:
        add_trees(running)
        right(running, "handbook", "everybody")
        right(running, "recipes", "User_1")
        assert running.user.ask("q", topic="theirs", user="User_1").ok
        source = {
            "Node": "soup.md",
            "Title": "Soup",
            "Tree": "recipes",
            "Quote": "smoked paprika",
            "Number": 1,
        }
        assert running.engine.answer("q", "smoked paprika", topic="theirs", Sources=[source]).ok
        praise = {"Topic": "theirs", "OnBehalfOf": "User_1", "Query": "q", "Fragment": "smoked paprika"}
        assert running.user.post("recommend", {**praise, "Type": "Promote Answer"}).ok
        assert running.user.get("get-topic-thread", Topic="theirs").json()[0]["Answer"] == ["smoked paprika"]
        running.browser = entered(running, "User_1")  # type: ignore[attr-defined]
        assert "smoked paprika" in running.browser.get("/thread?topic=theirs").text  # type: ignore[attr-defined]
        right(running, "recipes", "User_1", may=False)
        yield running


@pytest.mark.parametrize(("method", "route"), TOPIC_ROUTES)
def test_a_right_that_was_taken_away_closes_every_route_to_its_topics(
    closed: Served, method: str, route: str
) -> None:
    _, given, body = ROUTES[method, route]
    for client in (closed.user, closed.frontend):
        said = client.call(method, route, json=body, **given)
        assert said.status_code == 403, said.text
        assert "tree" in said.json()["detail"] and "paprika" not in said.text
    if method == "GET":
        assert closed.admin.call(method, route, json=body, **given).ok


def test_what_else_a_topic_was_known_by_is_closed_too(closed: Served) -> None:
    assert closed.user.get("user-topics", OnBehalfOf="User_1").status_code == 404
    assert closed.frontend.get("user-topics", OnBehalfOf="User_1").status_code == 404
    assert closed.user.ask("And?", topic="theirs", user="User_1").status_code == 403
    assert closed.admin.get("user-topics", OnBehalfOf="User_1").json() == {"theirs": "q"}
    headers = {"Authorization": f"Bearer {closed.keys['User_1']}"}
    body: dict[str, Any] = {
        "model": "metatree",
        "messages": [{"role": "user", "content": "q"}],
        "metadata": {"topic": "theirs"},
    }
    said = requests.post(f"{closed.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    assert said.status_code == 403 and "paprika" not in said.text


def test_who_waits_for_an_answer_does_not_get_it_without_the_right(serve: Serve) -> None:
    service = serve(answer_timeout_s=20.0)
    add_trees(service)
    right(service, "recipes", "User_1")
    service.user.ask("q", topic="T", user="User_1")
    said: list[requests.Response] = []
    waiting = threading.Thread(
        target=lambda: said.append(service.user.get("check-query", Topic="T", Seq="1"))
    )
    stream = requests.get(
        f"{service.url}/api/events",
        params={"Topic": "T", "Seq": "1"},
        headers={"Authorization": f"Bearer {service.keys['User_1']}"},
        timeout=60,
        stream=True,
    )
    waiting.start()
    threading.Event().wait(0.5)
    right(service, "recipes", "User_1", may=False)
    service.engine.answer("q", "smoked paprika", topic="T")
    waiting.join(30)
    assert said[0].status_code == 404 and "paprika" not in said[0].text
    assert "event: gone" in stream.text and "paprika" not in stream.text


QUERY = {"topic": "theirs", "seq": "1"}
PAGES: dict[tuple[str, str], dict[str, str]] = {
    ("GET", "/thread"): {"topic": "theirs"},
    ("GET", "/thread/export"): {"topic": "theirs", "form": "json"},
    ("GET", "/thread/question"): QUERY,
    ("GET", "/thread/walk"): QUERY,
    ("GET", "/thread/events"): QUERY,
    ("GET", "/run"): QUERY,
    ("GET", "/node"): {"id": "soup.md", "tree": "recipes"},
    ("GET", "/file"): {"id": "soup.md", "tree": "recipes"},
    ("GET", "/tree"): {"tree": "recipes"},
    ("GET", "/tree/children"): {"tree": "recipes"},
    ("GET", "/find"): {"q": "paprika", "tree": "recipes"},
    ("POST", "/ask"): {"topic": "theirs", "question": "And?"},
    ("POST", "/answer"): {**QUERY, "said": "yes"},
    ("POST", "/stop"): QUERY,
    ("POST", "/continue"): QUERY,
    ("POST", "/recommend"): {**QUERY, "type": "Promote Answer"},
    ("POST", "/topic/rename"): {"topic": "theirs", "title": "Ours"},
    ("POST", "/topic/delete"): {"topic": "theirs"},
    ("POST", "/memories/forget"): {"id": "soup.md", "tree": "recipes"},
}
"""Pages that show or change something of a topic or a tree, with a request that is right but for the right to it."""
OTHER_PAGES = {
    "/", "/login", "/login/code", "/login/oidc", "/login/oidc/back", "/logout", "/topics", "/memories",
    "/memories/undo", "/account", "/account/key", "/account/key/end", "/runs", "/docs", "/docs/{name}",
    "/static/{name}", "/healthz", "/openapi.json", "/metrics", "/agents", "/agent",
}  # fmt: skip
"""Pages that are nobody's, the person's own, or an administrator's."""


def test_the_table_has_every_page() -> None:
    modules = [import_module(f"{web.__name__}.{each.name}") for each in iter_modules(web.__path__)]
    routes = [route for module in modules if hasattr(module, "router") for route in module.router.routes]
    paths = {route.path for route in routes if not route.path.startswith(("/admin", "/agent"))}
    assert paths - OTHER_PAGES == {path for _, path in PAGES}


@pytest.mark.parametrize(("method", "path"), PAGES)
def test_a_right_that_was_taken_away_closes_every_page(closed: Served, method: str, path: str) -> None:
    browser: Browser = closed.browser  # type: ignore[attr-defined]
    given = PAGES[method, path]
    if method == "GET":
        said = requests.get(
            closed.url + path,
            params=given,
            cookies=browser.session.cookies,
            timeout=60,
            allow_redirects=False,
        )
    else:
        said = browser.send(path, **given)
    assert said.status_code in (403, 404), said.text
    assert "smoked" not in said.text


def test_lists_of_the_page_leave_out_what_is_closed(closed: Served) -> None:
    browser: Browser = closed.browser  # type: ignore[attr-defined]
    assert "topic=theirs" not in browser.get("/topics").text
    assert "paprika" not in browser.get("/memories").text and "recipes" not in browser.get("/tree").text
    admin = entered(closed, "Admin_1")
    assert "topic=theirs" in admin.get("/topics?of=User_1").text
    assert "Soup" in admin.get("/tree?tree=recipes").text and "paprika" in admin.get("/memories").text


def test_a_backup_from_the_page_has_the_memories_of_all_trees(closed: Served) -> None:
    made = entered(closed, "Admin_1").send("/admin/backups/make")
    assert made.ok
    with zipfile.ZipFile(io.BytesIO(made.content)) as archive:
        assert {"memory-handbook.db", "memory-recipes.db"} <= set(archive.namelist())


# engines


def test_an_engine_gets_topics_all_of_whose_trees_it_has(serve: Serve) -> None:
    service = serve(claim_timeout_s=0.0)
    add_trees(service)
    for tree in TEXTS:
        right(service, tree, "everybody")
    service.user.ask("both", topic="both", user="User_1")
    service.other_user.ask("soup", topic="soup", user="User_2", Trees=["recipes"])
    assert service.engine.get("get-new-queries").json()["Topic"] is None, (
        "one without named trees gets none of them"
    )
    unknown = service.engine.get("get-new-queries", Trees="nothing")
    assert unknown.status_code == 422 and "handbook, recipes" in unknown.json()["detail"]
    claimed = service.engine.get("get-new-queries", Trees="recipes").json()
    assert (claimed["Topic"], claimed["Trees"]) == ("soup", ["recipes"])
    assert service.engine.get("get-new-queries", Trees="handbook").json()["Topic"] is None
    claimed = service.other_engine.get("get-new-queries", Trees="recipes,handbook").json()
    assert (claimed["Topic"], claimed["Trees"]) == ("both", ["handbook", "recipes"])


def test_an_engine_that_cannot_have_a_topic_does_not_keep_the_wake_up(serve: Serve) -> None:
    service = serve(claim_timeout_s=20.0)
    add_trees(service)
    right(service, "recipes", "everybody")
    claimed: dict[str, Any] = {}

    def wait(client: Client, **given: str) -> None:
        claimed[given["Trees"]] = client.get("get-new-queries", **given).json()

    threads = [
        threading.Thread(target=wait, args=(client,), kwargs={"Trees": tree})
        for client, tree in ((service.engine, "handbook"), (service.other_engine, "recipes"))
    ]
    for thread in threads:
        thread.start()
        threading.Event().wait(0.3)
    service.user.ask("soup", topic="soup", user="User_1")
    threads[1].join(10)
    assert claimed["recipes"]["Topic"] == "soup"
    service.admin.post("admin/set-tree-right", {"Tree": "handbook", "Who": "everybody", "May": True})
    service.user.ask("leave", topic="leave", user="User_1", Trees=["handbook"])
    threads[0].join(10)
    assert claimed["handbook"]["Topic"] == "leave"


def test_many_who_cannot_be_served_keep_nobody_out_who_can(place: Path | str) -> None:
    async def claimed(database: ServiceDatabase) -> str | None:
        await database.start()
        queue = Queue(database)
        for number in range(30):
            await queue.add(f"other {number}", f"u{number}", "q", trees=4)
        await queue.add("mine", "me", "q", trees=2)
        claim = await queue.claim("e", trees=2)
        none = await queue.claim("e", trees=2)
        assert none is None
        await database.close()
        return claim.topic if claim else None

    assert asyncio.run(claimed(opened(place))) == "mine"


def test_a_question_to_two_trees_has_one_answer_with_the_tree_of_each_source(
    serve: Serve, trees: dict[str, Tree]
) -> None:
    service = serve(answer_timeout_s=30.0, claim_timeout_s=5.0, trees=trees)
    add_trees(service)
    for tree in TEXTS:
        right(service, tree, "everybody")
    questions = {
        "leave": "How many days of leave do employees have?",
        "soup": "What is the secret of the soup?",
        "nothing": "Who won the cup in 1954?",
    }
    for topic, text in questions.items():
        assert service.user.ask(text, topic=topic, user="User_1").ok
    assert service.user.ask(questions["soup"], topic="elsewhere", user="User_1", Trees=["handbook"]).ok
    with working(service, trees):  # type: ignore[arg-type]
        said = {
            topic: service.user.get("check-query", Topic=topic, Seq=1).json()
            for topic in (*questions, "elsewhere")
        }
    assert "thirty days" in " ".join(said["leave"]["Answer"])
    assert "paprika" in " ".join(said["soup"]["Answer"])
    assert {each["Tree"] for each in said["soup"]["Sources"]} == {"recipes"}
    assert said["nothing"]["End"] in ("closest", "nothing")
    assert "paprika" not in str(said["elsewhere"]), "nothing of a tree that was not asked"
    page = entered(service, "User_1").get("/thread?topic=soup").text
    assert "tree=recipes" in page and "Asks handbook, recipes" in page
    assert "recipes</span></a>" in page, "the name of the tree is within the card of the source"
    assert "paprika" in entered(service, "User_1").get("/node?id=soup.md&tree=recipes&topic=soup&seq=1").text


def test_a_recommendation_is_remembered_by_the_tree_that_answered(serve: Serve) -> None:
    service = serve()
    add_trees(service)
    for tree in TEXTS:
        right(service, tree, "everybody")
    service.user.ask("q", topic="T", user="User_1")
    service.engine.answer("q", "a", topic="T", Sources=[{"Node": "n", "Tree": "recipes"}])
    body = {"Topic": "T", "OnBehalfOf": "User_1", "Query": "q", "Fragment": "a", "Type": "Promote Answer"}
    assert service.user.post("recommend", body).ok
    learned = {
        tree: service.engine.get("get-recommendations", **({"Tree": tree} if tree else {})).json()
        for tree in ("", *TEXTS)
    }
    assert {tree: len(came) for tree, came in learned.items()} == {"": 0, "handbook": 0, "recipes": 1}
    unclear = service.user.post("recommend", {**body, "Query": "another"})
    assert unclear.status_code == 422 and "handbook, recipes" in unclear.json()["detail"]
    assert service.user.post("recommend", {**body, "Query": "another", "Tree": "handbook"}).ok
    right(service, "handbook", "everybody", may=False)
    assert service.user.post("recommend", {**body, "Topic": "none", "Tree": "handbook"}).status_code == 403
    assert service.user.post("recommend", {**body, "Topic": "none"}).status_code == 422


def test_lookups_are_for_engines_that_have_the_trees_of_the_topic(serve: Serve) -> None:
    service = serve()
    add_trees(service)
    right(service, "recipes", "everybody")
    service.user.ask("q", topic="T", user="User_1")
    service.user.post("add-lookup", {"Topic": "T", "Seq": 1, "Fragment": "f"})
    for given in ({}, {"Trees": "handbook"}):
        assert service.engine.get("get-new-lookup", **given).status_code == 404
    assert service.engine.get("get-new-lookup", Trees="recipes,handbook").json()["Trees"] == ["recipes"]


# chat clients


def test_chat_clients_name_a_tree_by_the_model(serve: Serve, trees: dict[str, Tree]) -> None:
    service = serve(claim_timeout_s=5.0, trees=trees)
    add_trees(service)
    right(service, "handbook", "everybody")
    right(service, "recipes", "User_1")

    def call(method: str, path: str, name: str, **given: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {service.keys[name]}"}
        return requests.request(method, f"{service.url}/v1/{path}", headers=headers, timeout=60, **given)

    def models(name: str) -> list[str]:
        return [each["id"] for each in call("GET", "models", name).json()["data"]]

    assert models("User_1") == ["metatree", "metatree/handbook", "metatree/recipes"]
    assert models("User_2") == ["metatree", "metatree/handbook"]
    assert call("GET", "models/metatree/recipes", "User_2").status_code == 404
    messages = [{"role": "user", "content": "What is the secret of the soup?"}]
    chat = {"model": "metatree/recipes", "messages": messages}
    assert call("POST", "chat/completions", "User_2", json=chat).status_code == 404
    with working(service, trees):  # type: ignore[arg-type]
        both = call(
            "POST", "chat/completions", "User_1", json={**chat, "model": "metatree/handbook+recipes"}
        ).json()
        one = call("POST", "chat/completions", "User_1", json=chat).json()
        other = call("POST", "chat/completions", "User_1", json={**chat, "model": "metatree/handbook"}).json()
    assert "paprika" in both["choices"][0]["message"]["content"]
    assert "tree=recipes" in one["choices"][0]["message"]["content"]
    assert "paprika" not in str(other)
    right(service, "recipes", "User_1", may=False)
    assert call("POST", "chat/completions", "User_1", json=chat).status_code == 404
    kept = call(
        "POST", "chat/completions", "User_1", json={**chat, "metadata": {"topic": one["metatree"]["topic"]}}
    )
    assert kept.status_code in (403, 404)


# the page


def test_the_page_has_a_switch_of_the_trees_that_one_may_ask(serve: Serve, trees: dict[str, Tree]) -> None:
    service = serve(trees=trees)
    add_trees(service)
    shut = entered(service, "User_2").get("/topics").text
    assert "no tree that you may ask" in shut and entered(service, "User_2").get("/tree").status_code == 403
    right(service, "handbook", "everybody")
    right(service, "recipes", "User_1")
    one, both = entered(service, "User_2"), entered(service, "User_1")
    assert 'name="tree-' not in one.get("/topics").text
    page = both.get("/topics").text
    assert 'name="tree-handbook"' in page and 'name="tree-recipes"' in page
    topic = asked(both, **{"tree-recipes": "1"})
    assert "Asks recipes" in both.get(f"/thread?topic={topic}").text
    assert "no engine is connected" in both.get(f"/thread?topic={topic}").text
    forged = one.send("/ask", question="q", **{"tree-recipes": "1"})
    assert forged.status_code == 403 and "User_2 may ask" in forged.text
    assert "Soup" in both.get("/tree?tree=recipes").text and "Leave" in both.get("/tree").text
    assert "paprika" in both.get("/find?q=paprika&tree=recipes").text
    found = both.get("/find?q=paprika").text
    assert "tree=recipes" in found and 'aria-label="What was found"' in found, "all trees are searched"
    assert 'aria-label="What was found"' not in one.get("/find?q=paprika").text, (
        "those that one may look into"
    )


def test_an_administrator_lets_people_in_on_the_page(serve: Serve, trees: dict[str, Tree]) -> None:
    service = serve(trees=trees)
    admin = entered(service, "Admin_1")
    assert "No tree has a name" in admin.get("/admin/trees").text
    add_trees(service)
    assert "administrators alone" in admin.get("/admin/trees").text
    assert admin.send("/admin/groups/join", group="cooks", member="User_1").ok
    refused = admin.send("/admin/groups/join", group="cooks", member="Nobody")
    assert refused.status_code == 422 and "There is no user &#39;Nobody&#39;." in refused.text
    assert 'name="group" value="cooks"' in refused.text and 'name="member" value="Nobody"' in refused.text
    said = admin.send("/admin/trees/right", choice="recipes", who="group:cooks").text
    assert "group:cooks may ask recipes now." in said and names_of(service.user) == ["recipes"]
    assert admin.send("/admin/trees/title", choice="recipes", title="Our recipes").ok
    assert service.user.get("trees").json() == [{"Name": "recipes", "Title": "Our recipes"}]
    assert admin.send("/admin/trees/title", choice="nothing", title="x").status_code == 422
    refused = admin.send("/admin/trees/title", choice="recipes", title="Our recipes " * 20)
    assert refused.status_code == 422 and "at most 200 characters" in refused.text, "nothing is cut"
    unknown = admin.send("/admin/trees/right", choice="recipes", who="Nobody").text
    assert "No user &#39;Nobody&#39;." in unknown and "metatree service" not in unknown
    refused = admin.send("/admin/trees/right", choice="recipes", who="two words")
    assert refused.status_code == 422 and 'name="who" value="two words"' in refused.text
    assert "<option selected>recipes</option>" in refused.text, "what was typed stays"
    listed = admin.get("/admin/trees").text
    assert "Remove access of group:cooks to recipes</button>" in listed
    assert "Everybody in the group cooks can no longer ask recipes then," in listed
    assert admin.send("/admin/groups/leave", group="cooks", member="User_1").ok
    assert ">nobody; who joins has the access that it has<" in admin.get("/admin/trees").text
    assert admin.send("/admin/groups/join", group="cooks", member="User_1").ok
    assert '<td role="cell" data-name="Members">User_1</td>' in listed
    assert "Remove User_1 from cooks</button>" in listed and "Take out" not in listed
    (one,) = buttons(listed, "/admin/trees/right")[:1]
    assert (one["tree"], one["who"]) == ("recipes", "group:cooks")
    assert "group:cooks may not ask recipes any more." in admin.post("/admin/trees/right", one).text
    assert names_of(service.user) == []
    assert entered(service, "User_1").get("/admin/trees").status_code == 403
    assert "Newton may ask no tree yet" in admin.send("/admin/users/add", name="Newton", role="user").text
    assert "may ask no tree yet" not in admin.send("/admin/users/add", name="E_1", role="engine").text


def test_an_engine_that_lacks_a_tree_is_not_said_to_be_no_engine(serve: Serve) -> None:
    service = serve(claim_timeout_s=0.0)
    add_trees(service)
    for tree in TEXTS:
        right(service, tree, "everybody")
    service.user.ask("both", topic="both", user="User_1")
    user = entered(service, "User_1")
    assert "no engine is connected. The question is kept" in user.get("/thread?topic=both").text
    assert service.engine.get("get-new-queries", Trees="recipes").json()["Topic"] is None
    said = user.get("/thread?topic=both").text
    assert "no engine that has handbook and recipes is connected. The question is kept" in said


def test_what_the_sources_do_not_say_is_added_to_the_tree_that_is_chosen(serve: Serve) -> None:
    service = serve()
    add_trees(service)
    for tree in TEXTS:
        right(service, tree, "everybody")
    browser = entered(service, "User_1")
    service.user.ask("q", topic="T", user="User_1")
    service.engine.answer("q", "The sources do not say.", topic="T", End="nothing")
    page = browser.get("/thread?topic=T").text
    assert all(f'<option value="{tree}">' in page for tree in TEXTS)
    fields = {"topic": "T", "seq": "1", "type": "Add Missing Info", "fragment": "a"}
    assert browser.send("/recommend", **fields, tree="recipes").status_code == 303
    came = {tree: len(service.engine.get("get-recommendations", Tree=tree).json()) for tree in TEXTS}
    assert came == {"handbook": 0, "recipes": 1}


def test_a_follow_up_stays_in_the_tree_of_the_answer_before_it(serve: Serve, trees: dict[str, Tree]) -> None:
    service = serve(trees=trees, answer_timeout_s=30.0, claim_timeout_s=5.0)
    add_trees(service)
    for tree in trees:
        right(service, tree, "everybody")
    question = {"role": "user", "content": "What is the secret of the soup?"}
    with working(service, trees):  # type: ignore[arg-type]
        chat = client_of(service).chat.completions
        given: Any = chat.create(model="metatree/recipes", messages=[question])  # type: ignore[list-item]
        before = {"role": "assistant", "content": given.choices[0].message.content}
        then = {"role": "user", "content": "And for the spoon?"}
        given = chat.create(model="metatree", messages=[question, before, then])  # type: ignore[list-item]
    last = service.user.get("get-topic-thread", Topic=given.metatree["topic"]).json()[-1]
    assert last["Notes"][0].startswith("Searched in recipes alone")
    assert {each["Tree"] for each in [*last["Sources"], *last["Closest"]]} == {"recipes"}
