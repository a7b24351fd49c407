"""Pages of lists over real HTTP: what people take back, their keys, and what administrators do."""

from __future__ import annotations

import asyncio
import html
import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import requests
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.memory import learn

from metatree import Node, Tree
from metatree.notes.feedback import flags
from metatree.notes.notes import memories, remember

from .conftest import SECRETS, Served
from .test_web import Browser, asked, entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
ANSWER = "The lamp in the hall has a bulb of nine watts."


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree.create(tmp_path / "house.db", title="house")
    made.add(Node(id="hall", title="Hall", content=f"Lamps.\n{ANSWER}\n"))
    return made


@pytest.fixture
def service(serve: Serve, tree: Tree) -> Served:
    return serve(memory=tree)


def learned(service: Served, tree: Tree) -> None:
    async def once() -> None:
        async with ServiceClient(service.url, "Inference_1", SECRETS["Inference_1"][1]) as client:
            await learn(client, tree)

    asyncio.run(once())


def answered(service: Served, browser: Browser) -> str:
    topic = asked(browser, "How many watts?")
    sources = [{"Node": "hall", "Title": "Hall", "Quote": ANSWER, "Number": 1}]
    service.engine.answer("How many watts?", ANSWER, topic=topic, Sources=sources, End="answered")
    return topic


def buttons(page: str, action: str) -> list[dict[str, str]]:
    """Return the fields of each form of a page that is sent to an address."""
    forms = re.findall(rf'<form[^>]* action="{action}">(.*?)</form>', page, re.S)
    return [dict(re.findall(r'name="(\w+)" value="([^"]*)"', each)) for each in forms]


def shown(page: str) -> list[str]:
    """Return what a page shows this once."""
    return [html.unescape(each) for each in re.findall(r'class="shown"[^>]*>([^<]+)<', page)]


# what people say, and take back


def test_one_click_remembers_an_answer_and_another_takes_it_back(service: Served, tree: Tree) -> None:
    browser = entered(service, "User_1")
    topic = answered(service, browser)
    page = browser.get(f"/thread?topic={topic}").text
    up, down, _ = buttons(page, "/recommend")
    assert (up["type"], down["type"]) == ("Promote Answer", "Flag as Off Topic") and "fragment" not in up
    sent = browser.post("/recommend", up)
    learned(service, tree)
    assert [each.content for each in memories(tree)] == [ANSWER]
    (undo,) = buttons(browser.get(sent.headers["Location"]).text, "/memories/undo")
    assert "taken back" in browser.get(browser.post("/memories/undo", undo).headers["Location"]).text
    learned(service, tree)
    assert memories(tree) == []
    assert browser.post("/memories/undo", undo).status_code == 404, "once"


def test_a_flag_is_taken_back_and_what_others_said_stays(service: Served, tree: Tree) -> None:
    one, two = entered(service, "User_1"), entered(service, "User_2")
    topics = [answered(service, each) for each in (one, two)]
    for browser, topic in zip((one, two), topics, strict=True):
        for form in buttons(browser.get(f"/thread?topic={topic}").text, "/recommend")[:2]:
            assert browser.post("/recommend", form).status_code == 303
    learned(service, tree)
    assert {each.who for each in flags(tree.memory)} == {"User_1", "User_2"}
    listed = one.get("/memories").text
    undo = buttons(listed, "/memories/undo")
    assert len(undo) == 2 and "User_2" not in listed.partition("Memories</h2>")[0]
    assert two.send("/memories/undo", number=undo[0]["number"]).status_code == 404, "not theirs"
    for each in undo:
        assert one.post("/memories/undo", each).status_code == 303
    learned(service, tree)
    assert {each.who for each in flags(tree.memory)} == {"User_2"}
    (memory,) = memories(tree)
    assert [each["who"] for each in memory.provenance["said"]] == ["User_2"]
    assert "There are no recommendations" in one.get("/memories").text
    assert len(buttons(entered(service, "Admin_1").get("/memories").text, "/memories/undo")) == 2


def test_a_memory_is_forgotten_alone_also_where_its_time_and_source_are_not_known(
    service: Served, tree: Tree
) -> None:
    remember(tree, "The lamps have nine watts.", who="User_1", source="a call", evidence=False)
    said = [{"who": "User_1", "at": "", "source": None}]
    odd = Node("odd", "odd", content="x", kind="memory", provenance={"by": "remember", "said": said})
    tree.add(odd, tree.root)
    assert entered(service, "User_1").send("/memories/forget", id="odd").status_code == 303
    assert [each.content for each in memories(tree)] == ["The lamps have nine watts."]


def test_a_program_takes_a_recommendation_back(service: Served) -> None:
    body = {"Topic": "T", "OnBehalfOf": "User_1", "Query": "q", "Fragment": "f", "Type": "Promote Answer"}
    number = service.user.post("recommend", body).json()["Number"]
    taken = {"OnBehalfOf": "User_1", "Number": number}
    assert service.other_user.post("withdraw-recommendation", taken).status_code == 403
    mine = {"OnBehalfOf": "User_2", "Number": number}
    assert service.other_user.post("withdraw-recommendation", mine).status_code == 404
    assert service.user.post("withdraw-recommendation", taken).status_code == 200
    assert service.user.post("withdraw-recommendation", taken).status_code == 404
    _, last = service.engine.get("get-recommendations", After="0").json()
    assert (last["withdraws"], last["withdrawn"]) == (number, {"fragment": "f", "comment": ""})
    assert last["fragment"] == last["comment"] == "", "an engine that does not know of it remembers nothing"


def test_a_memory_is_forgotten_by_who_said_it_or_an_administrator(service: Served, tree: Tree) -> None:
    remember(tree, "Deploys are on <Tuesdays>.", who="User_1", evidence=False)
    remember(tree, "Deploys are on <Tuesdays>.", who="Bea", evidence=False)
    one, two, root = (entered(service, name) for name in ("User_1", "User_2", "Admin_1"))
    page = one.get("/memories").text
    assert "&lt;Tuesdays&gt;" in page and "<Tuesdays>" not in page and "User_1, Bea" in page
    (form,) = buttons(page, "/memories/forget")
    assert buttons(two.get("/memories").text, "/memories/forget") == []
    assert two.send("/memories/forget", id=form["id"]).status_code == 422
    assert one.post("/memories/forget", form).status_code == 303
    (left,) = memories(tree)
    assert [each["who"] for each in left.provenance["said"]] == ["Bea"]
    assert root.send("/memories/forget", id=form["id"]).status_code == 303 and memories(tree) == []


def test_a_topic_is_renamed_and_found_by_its_title(service: Served) -> None:
    browser, other = entered(service, "User_1"), entered(service, "User_2")
    topic = asked(browser, "How many watts?")
    assert other.send("/topic/rename", topic=topic, title="x").status_code == 404
    assert browser.send("/topic/rename", topic=topic, title="x" * 201).status_code == 422
    assert browser.send("/topic/rename", topic=topic, title=" The <hall>\n lamp ").status_code == 303
    assert "<title>The &lt;hall&gt; lamp · metatree" in browser.get(f"/thread?topic={topic}").text
    listed = browser.get("/topics?q=HALL").text
    assert ">The &lt;hall&gt; lamp</a>" in listed and "How many watts?" not in listed
    mine = {"Topic": topic, "OnBehalfOf": "User_1", "Title": ""}
    assert service.other_user.post("rename-topic", {**mine, "OnBehalfOf": "User_2"}).status_code == 403
    assert service.user.post("rename-topic", mine).status_code == 200
    assert "How many watts?</a>" in browser.get("/topics").text


# keys of one's own


def test_a_person_makes_a_key_sees_it_once_and_ends_it(service: Served) -> None:
    browser, other = entered(service, "User_1"), entered(service, "User_2")
    (key,) = shown(browser.send("/account/key").text)

    def status() -> int:
        bearer = {"Authorization": f"Bearer {key}"}
        return requests.get(f"{service.url}/api/login", headers=bearer, timeout=60).status_code

    assert status() == 200 and key not in browser.get("/account").text
    mine = buttons(browser.get("/account").text, "/account/key/end")[-1]
    assert other.send("/account/key/end", id=mine["id"]).status_code == 404 and status() == 200
    assert browser.post("/account/key/end", mine).status_code == 200 and status() == 401


# administrators

ADMIN_PAGES = ("/admin", *(f"/admin/{name}" for name in ("users", "keys", "engines", "limits", "backups")))
ADMIN_POSTS = (
    *("/admin/requeue", "/admin/release", "/admin/users/add", "/admin/users/secret", "/admin/users/link"),
    *(
        "/admin/users/role",
        "/admin/users/remove",
        "/admin/keys/add",
        "/admin/keys/end",
        "/admin/backups/make",
    ),
)


@pytest.mark.parametrize("name", ["User_1", "Frontend_1"])
def test_nobody_else_administers(service: Served, name: str) -> None:
    browser = entered(service, name)
    for path in ADMIN_PAGES:
        assert browser.get(path).status_code == 403, path
    for path in ADMIN_POSTS:
        sent = browser.send(path, name="User_2", role="admin", choice="admin", topic="T", seq="1", id="x")
        assert sent.status_code == 403, path
    root = entered(service, "Admin_1")
    for path in ADMIN_POSTS:
        assert root.post(path, {"name": "User_2", "csrf": "wrong"}).status_code == 403, path


@pytest.mark.parametrize("path", [*ADMIN_PAGES, "/memories", "/account"])
def test_every_list_has_a_strict_policy_and_no_script_of_its_own(service: Served, path: str) -> None:
    page = entered(service, "Admin_1").get(path)
    assert page.status_code == 200 and "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-store"
    assert not re.search(r"<script(?![^>]* src=)|<style| style=|\son\w+=", page.text)


def test_an_administrator_adds_a_user_who_logs_in_by_the_link(service: Served) -> None:
    root = entered(service, "Admin_1")
    page = root.send("/admin/users/add", name="Bea", role="user").text
    secret, link = shown(page)
    assert link.startswith(f"{service.url}/login#code=")
    new = Browser(service.url)
    assert new.post("/login", {"code": link}).status_code == 303 and "Bea" in new.get("/topics").text
    assert Browser(service.url).log_in("Bea", secret).status_code == 303
    assert root.send("/admin/users/add", name="Bea", role="user").status_code == 409
    wrong = root.send("/admin/users/add", name="<b>", role="user")
    assert wrong.status_code == 422 and "<b>" not in wrong.text and "is no name" in wrong.text
    assert secret not in root.get("/admin/users").text


def test_roles_secrets_and_users_change_at_once(service: Served) -> None:
    root, user = entered(service, "Admin_1"), entered(service, "User_1")
    assert user.get("/runs").status_code == 403
    assert "is of role frontend now" in root.send("/admin/users/role", name="User_1", choice="frontend").text
    assert user.get("/admin").status_code == 403 and "User_2" not in user.get("/topics").text
    assert service.user.ask("x", user="Anybody", topic="theirs").status_code == 200, "as a frontend"
    assert root.send("/admin/users/role", name="User_1", choice="king").status_code == 422
    (secret,) = shown(root.send("/admin/users/secret", name="User_1").text)
    assert user.get("/topics").url.startswith(f"{service.url}/login"), "sessions end with the secret"
    assert service.user.get("login").status_code == 401
    again = Browser(service.url)
    assert again.log_in("User_1", secret).status_code == 303
    assert root.send("/admin/users/remove", name="User_1").status_code == 200
    assert again.get("/topics").url.startswith(f"{service.url}/login")
    for path in ("/admin/users/role", "/admin/users/remove"):
        assert root.send(path, name="Admin_1", choice="user").status_code == 422, "not themselves"
    assert root.send("/admin/users/secret", name="Nobody").status_code == 404
    assert root.send("/admin/users/link", name="Inference_1").status_code == 422


def test_an_administrator_makes_and_ends_keys_of_others(service: Served) -> None:
    root = entered(service, "Admin_1")
    (key,) = shown(root.send("/admin/keys/add", name="User_2").text)
    bearer = {"Authorization": f"Bearer {key}"}
    assert requests.get(f"{service.url}/v1/models", headers=bearer, timeout=60).status_code == 200
    listed = buttons(root.get("/admin/keys?of=User_2").text, "/admin/keys/end")
    assert len(listed) == 2 and len(buttons(root.get("/admin/keys").text, "/admin/keys/end")) > 2
    for each in listed:
        assert root.post("/admin/keys/end", each).status_code == 200
    assert requests.get(f"{service.url}/v1/models", headers=bearer, timeout=60).status_code == 401
    assert root.send("/admin/keys/end", id="nothing").status_code == 404
    assert root.send("/admin/keys/add", name="Nobody").status_code == 422


def test_names_that_are_taken_are_refused_and_what_was_typed_stays(service: Served) -> None:
    root, user = entered(service, "Admin_1"), entered(service, "User_1")
    assert user.send("/account/key", label="my laptop").status_code == 200
    again = user.send("/account/key", label="my  laptop")
    assert again.status_code == 422 and "User_1 has a key named &#39;my laptop&#39; already" in again.text
    assert "export OPENAI_BASE_URL=" in user.send("/account/key", label="a desk").text
    refused = root.send("/admin/keys/add", name="User_1", label="a desk")
    assert refused.status_code == 422 and 'name="label" value="a desk"' in refused.text
    near = root.send("/admin/users/add", name="user_1", role="admin")
    assert near.status_code == 422 and "There is a user User_1 already" in near.text
    assert 'name="name" value="user_1"' in near.text and "<option selected>admin</option>" in near.text
    for path in ("/account/key", "/memories/undo", "/admin/requeue", "/admin/trees/right"):
        assert root.get(path).status_code == 200, "the address of a form, loaded again"


def test_a_correction_has_to_correct_something(service: Served) -> None:
    user = entered(service, "User_1")
    topic = asked(user)
    service.engine.get("get-new-queries")
    assert service.engine.answer("How many watts?", "Nine watts.\n\nOr ten.", topic=topic).ok
    said = {"topic": topic, "seq": "1", "type": "Make Correction"}
    for comment in ("", " "):
        same = user.send("/recommend", **said, fragment="Nine watts.\r\n\r\nOr ten. ", comment=comment)
        assert same.status_code == 422 and "Nothing was changed: write your words" in same.text
    assert user.send("/recommend", **said, fragment="Nine watts.", comment="").status_code == 303
    assert (
        user.send("/recommend", **said, fragment="Nine watts. Or ten.", comment="Eleven").status_code == 303
    )


def test_the_queue_has_pages(service: Served) -> None:
    root = entered(service, "Admin_1")
    for number in range(61):
        service.frontend.ask(f"Question <{number:02}>", topic=f"T{number:02}")
    first = root.get("/admin").text
    assert "Question &lt;49&gt;" in first and "Question &lt;50&gt;" not in first
    later = re.search(r'href="(/admin\?[^"]*)">Later', first)
    assert later is not None
    second = root.get(html.unescape(later[1])).text
    assert "Question &lt;60&gt;" in second and "Question &lt;49&gt;" not in second and ">Later<" not in second
    assert ">Earlier<" in second


def test_engines_are_listed_with_what_they_have(service: Served) -> None:
    root = entered(service, "Admin_1")
    service.frontend.ask("Who?", topic="T")
    service.engine.get("get-new-queries")
    rows = re.findall(
        r"<tr[^>]*><td[^>]*>(\w+)</td><td[^>]*>(\d)</td><td[^>]*>[^<]*</td><td[^>]*>(\w+)</td>",
        root.get("/admin/engines").text,
    )
    assert set(rows) == {("Inference_1", "1", "yes"), ("Inference_2", "0", "no")}


def test_a_backup_is_downloaded_whole_and_leaves_nothing(
    service: Served, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remember(tree, "Deploys are on Tuesdays.", who="Ann", evidence=False)
    root = entered(service, "Admin_1")
    asked(root, "What is in it?")
    sent = root.send("/admin/backups/make")
    assert sent.status_code == 200 and "attachment" in sent.headers["Content-Disposition"]
    assert sent.headers["Cache-Control"] == "no-store"
    with zipfile.ZipFile(BytesIO(sent.content)) as archive:
        assert b"What is in it?" in archive.read("query.jsonl") and b"Tuesdays" in archive.read("memory.db")
    assert list(tmp_path.glob("metatree-backup-*")) == []


# trying the API


def test_the_page_of_the_api_has_all_its_files_here(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Browser(service.url).get("/docs")
    assert page.status_code == 200 and "script-src 'self';" in page.headers["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]* src=)|<style| style=|\son\w+=|https?://", page.text)
    for path in re.findall(r'(?:src|href)="(/(?:docs|static)/[^"]+)"', page.text):
        assert requests.get(service.url + path, timeout=60).status_code == 200, path
    for name in ("redoc.standalone.js", "..%2Fcore.py", "core.py"):
        assert requests.get(f"{service.url}/docs/{name}", timeout=60).status_code == 404
    monkeypatch.setattr("metatree_agents.service.web._api_docs._folder", lambda: None)
    missing = Browser(service.url).get("/docs")
    assert missing.status_code == 404 and "metatree-memory[api-docs]" in missing.text


def test_the_description_says_that_a_key_stands_for_a_proof(service: Served) -> None:
    described = requests.get(f"{service.url}/openapi.json", timeout=60).json()
    for path, methods in described["paths"].items():
        for about in methods.values():
            if path.startswith("/api/"):
                assert {"API key": []} in about["security"], path
                proof = {each["name"] for each in about["parameters"] if not each["required"]}
                assert {"User", "Nonce", "Hash"} <= proof
    assert described["components"]["securitySchemes"]["API key"]["scheme"] == "bearer"


def test_the_topic_of_the_latest_question_is_on_top_and_a_quote_stands_there_once(service: Served) -> None:
    browser = entered(service, "User_1")
    for topic, text in (
        ("first", "How many watts?"),
        ("second", "Who won the cup?"),
        ("first", "And at night?"),
    ):
        assert service.user.ask(text, topic=topic, user="User_1").ok
    listed = re.findall(r'href="/thread\?topic=(\w+)"', browser.get("/topics").text)
    assert listed == ["first", "second"]
    source = {"Node": "n", "Title": "Lamps", "Quote": "nine  watts", "Number": 1}
    service.engine.answer("How many watts?", "nine watts", topic="first", Sources=[source], End="answered")
    page = browser.get("/thread?topic=first").text
    assert "<summary>Quote</summary>" in page
    service.engine.answer("Who won the cup?", "Not said.", topic="second", End="nothing")
    assert "what there is" in browser.get("/thread?topic=second").text


def test_what_was_said_of_an_answer_stands_beside_it(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, "How many watts?")
    service.engine.answer("How many watts?", "nine watts", topic=topic, End="answered")
    fields = {"topic": topic, "seq": "1", "type": "Make Correction", "fragment": "nine watts"}
    browser.send("/recommend", **fields, comment="Eleven since May.")
    page = browser.get(f"/thread?topic={topic}").text
    assert "Corrected by User_1" in page and "Eleven since May." in page
    (number,) = re.findall(r'name="number" value="(\d+)"', page)
    assert browser.send("/memories/undo", number=number, topic=topic, seq="1").status_code == 303
    assert "Corrected by" not in browser.get(f"/thread?topic={topic}").text


def test_the_limits_say_what_they_are_and_the_description_has_groups(service: Served) -> None:
    page = entered(service, "Admin_1").get("/admin/limits").text
    assert (
        "requests a second from one address" in page and "whether proofs made with SHA-1 are refused" in page
    )
    paths = requests.get(f"{service.url}/openapi.json", timeout=20).json()["paths"]
    routes = {path: route for path, ways in paths.items() for route in ways.values()}
    tags = {path: route["tags"][0] for path, route in routes.items()}
    assert tags["/api/add-query"] == "Asking" and tags["/api/get-new-queries"] == "Engines"
    assert tags["/api/admin/overview"] == "Administration" and tags["/v1/models"].startswith("Chat clients")
    assert {*tags.values()} == {
        *("Asking", "Engines", "Administration", "Health and figures", "Chat clients of OpenAI's API")
    }
    assert routes["/v1/models/{name}"]["summary"] == "Return one model"


def test_a_question_in_the_queue_says_how_many_are_before_it(service: Served) -> None:
    user = entered(service, "User_1")
    asked(user, "How many lamps?")
    service.engine.get("get-new-queries")
    first, second = (asked(user, f"How many watts has lamp {number}?") for number in (1, 2))
    assert "In the queue; 1 being answered." in user.get(f"/thread?topic={first}").text
    page = user.get(f"/thread?topic={second}").text
    assert "In the queue, 1 question before it; 1 being answered." in page
    assert "Delete “How many watts has lamp 2?”" in page
