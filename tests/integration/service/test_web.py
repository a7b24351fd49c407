"""The web page over real HTTP: logging in, forms that come from elsewhere, headers, and what each person may see."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from metatree_agents.service.web.sessions import Sessions

from metatree import Node, Tree
from metatree.notes.notes import memories, remember

from .conftest import SECRETS, Served, opened

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]


class Browser:
    """What a browser does with cookies, forms and where they come from; it runs no scripts."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def get(self, path: str, **given: object) -> requests.Response:
        return self.session.get(self.url + path, timeout=120, **given)  # type: ignore[arg-type]

    def post(self, path: str, fields: dict[str, str], **headers: str) -> requests.Response:
        said = {"Origin": self.url, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.session.post(
            self.url + path, data=fields, headers=said, timeout=120, allow_redirects=False
        )

    def log_in(self, name: str, secret: str | None = None) -> requests.Response:
        return self.post("/login", {"name": name, "secret": secret or SECRETS[name][1]})

    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/topics").text)
        assert found is not None
        return found[1]

    def send(self, path: str, **fields: str) -> requests.Response:
        return self.post(path, {"csrf": self.csrf(), **fields})


@pytest.fixture
def tree() -> Tree:
    made = Tree.create(":memory:", title="house")
    made.add(Node(id="hall", title="Hall", description="<b>Lamps</b> & doors"))
    text = "The lamp in the hall\nhas a bulb of nine watts.\n<script>alert(1)</script>\n"
    made.add(Node(id="hall/lamp", title="Lamp <i>", content=text), parent="hall")
    return made


@pytest.fixture
def service(serve: Serve, tree: Tree) -> Served:
    return serve(memory=tree)


def entered(service: Served, name: str) -> Browser:
    browser = Browser(service.url)
    assert browser.log_in(name).status_code == 303
    return browser


def asked(browser: Browser, text: str = "How many watts?", **fields: str) -> str:
    """Ask a question and return the topic."""
    sent = browser.send("/ask", question=text, **fields)
    assert sent.status_code == 303, sent.text
    return parse_qs(urlsplit(sent.headers["Location"]).query)["topic"][0]


# logging in and out


def test_a_session_cookie_is_for_the_browser_alone(service: Served) -> None:
    browser = Browser(service.url)
    hint = browser.get("/login").text
    assert (
        -1 < hint.find("For another link, ask an administrator") < hint.find("metatree service users login")
    )
    assert browser.get("/").url == f"{service.url}/login"
    sent = browser.log_in("User_1")
    cookie = sent.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/" in cookie and "Secure" not in cookie
    assert cookie.startswith(f"metatree-{urlsplit(service.url).port}=")
    page = browser.get("/")
    assert page.url == f"{service.url}/topics" and "User_1" in page.text
    assert SECRETS["User_1"][1] not in page.text + str(page.headers) + str(sent.headers)


def test_behind_https_the_cookie_is_sent_over_https_alone(service: Served) -> None:
    browser = Browser(service.url)
    fields = {"name": "User_1", "secret": SECRETS["User_1"][1]}
    sent = browser.post("/login", fields, X_Forwarded_Proto="https")
    assert re.match(r"__Host-metatree=.*; Secure", sent.headers["Set-Cookie"])


def test_who_is_not_logged_in_comes_back_to_where_they_wanted(service: Served) -> None:
    browser = Browser(service.url)
    page = browser.get("/node?id=hall")
    assert urlsplit(page.url).path == "/login" and 'value="/node?id=hall"' in page.text
    fields = {"name": "User_1", "secret": SECRETS["User_1"][1], "next": "/node?id=hall"}
    assert browser.post("/login", fields).headers["Location"] == "/node?id=hall"
    fields["next"] = "https://evil.example/"
    assert Browser(service.url).post("/login", fields).headers["Location"] == "/"
    assert browser.get("/thread/walk?topic=x&seq=1").status_code == 404
    fetched = requests.get(
        f"{service.url}/thread/walk", headers={"Sec-Fetch-Mode": "cors"}, timeout=120, allow_redirects=False
    )
    assert fetched.status_code == 401


def test_a_wrong_secret_an_unknown_user_and_an_engine_get_no_session(service: Served) -> None:
    browser = Browser(service.url)
    wrong, unknown = browser.log_in("User_1", "wrong"), browser.log_in("Nobody", "wrong")
    assert wrong.status_code == unknown.status_code == 401
    assert "Wrong name or secret" in wrong.text and "Wrong name or secret" in unknown.text
    assert browser.log_in("Inference_1").status_code == 403
    assert not browser.session.cookies and browser.get("/topics").url.startswith(f"{service.url}/login")


def test_guessing_is_slowed_also_with_the_right_secret(service: Served) -> None:
    browser = Browser(service.url)
    for _ in range(5):
        assert browser.log_in("User_1", "wrong").status_code == 401
    slowed = browser.log_in("User_1")
    assert slowed.status_code == 429 and int(slowed.headers["Retry-After"]) >= 1
    assert "Try again in" in slowed.text and not browser.session.cookies


def test_logging_out_ends_the_session_and_everywhere_ends_all(service: Served) -> None:
    one, two = entered(service, "User_1"), entered(service, "User_1")
    kept = {name: value or "" for name, value in one.session.cookies.items()}
    assert one.send("/logout").headers["Location"] == "/login"
    again = requests.get(f"{service.url}/topics", cookies=kept, timeout=120, allow_redirects=False)
    assert again.status_code == 303, "the old cookie is worth nothing"
    assert two.get("/topics").url == f"{service.url}/topics"
    three = entered(service, "User_1")
    two.send("/logout", everywhere="1")
    assert urlsplit(three.get("/topics").url).path == "/login"


def test_a_one_time_code_logs_in_once(serve: Serve, place: Path | str) -> None:
    service = serve()

    async def made() -> str:
        database = opened(place)
        await database.start()
        code = await Sessions(database).make_code("User_1")
        await database.close()
        return code

    code = asyncio.run(made())
    browser, other = Browser(service.url), Browser(service.url)
    assert browser.post("/login", {"code": code}).headers["Location"] == "/"
    assert browser.get("/topics").url == f"{service.url}/topics"
    assert "was used" in other.post("/login", {"code": code}).text and not other.session.cookies


# forms that come from elsewhere

POSTS = ("/ask", "/answer", "/recommend", "/topic/delete", "/logout")


def test_a_whole_link_pasted_for_its_code_logs_in(serve: Serve, place: Path | str) -> None:
    service = serve()

    async def make() -> str:
        database = opened(place)
        await database.start()
        made = await Sessions(database).make_code("User_1")
        await database.close()
        return made

    code = asyncio.run(make())
    browser = Browser(service.url)
    assert browser.post("/login", {"code": f"{service.url}/login#code={code}"}).status_code == 303
    assert "User_1" in browser.get("/topics").text


def test_people_and_administrators_see_that_nobody_searches(service: Served) -> None:
    browser, admin = entered(service, "User_1"), entered(service, "Admin_1")
    topic = asked(browser)
    for page in (browser.get(f"/thread?topic={topic}").text, admin.get("/admin").text):
        assert "Nobody is searching: no engine is connected." in page
    line = f"METATREE_SECRET=… metatree service worker --server {service.url} --user NAME --source FOLDER"
    assert f"<code>{line}</code>" in admin.get("/admin").text and ".md" not in admin.get("/admin").text
    service.engine.get("get-new-lookup")  # an engine is there, busy with something else
    for page in (browser.get(f"/thread?topic={topic}").text, admin.get("/admin").text):
        assert "Nobody is searching" not in page
    assert "In the queue" in browser.get(f"/thread?topic={topic}").text


def test_what_memory_lacks_is_said_where_a_person_is_asked(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, "Who pays?")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    read = {"Event": "read", "Node": "hall", "Title": "Hall", "Answers": 0, "Text": "read Hall: nothing"}
    service.engine.post("give-progress", {"Topic": topic, "Seq": 1, "Steps": [read]})
    asks = [{"Key": "k", "Question": "Who pays?"}]
    service.engine.post("ask-person", {"Topic": topic, "Seq": 1, "Lease": lease, "Questions": asks})
    page = browser.get(f"/thread?topic={topic}").text
    assert "The memory does not say this, as far as the search found: it read Hall." in page
    said = re.findall(r'class="asks"[^>]*>([^<]*)<', page)
    assert said == ["Do you know the answer to your question?"], "the question is not repeated"


def test_topics_are_found_by_what_was_asked(service: Served) -> None:
    browser = entered(service, "User_1")
    service.user.ask("How many Watts?", user="User_1", topic="one")
    service.user.ask("And how many 100% lamps?", user="User_1", topic="one")
    service.user.ask("Who pays?", user="User_1", topic="two")
    service.frontend.ask("How many lamps?", user="User_2", topic="theirs")

    def found(words: str) -> set[str]:
        page = browser.get("/topics", params={"q": words}).text
        return set(re.findall(r'href="/thread\?topic=(\w+)"', page))

    assert (found("watts"), found("0% L"), found("two"), found("")) == (
        {"one"},
        {"one"},
        {"two"},
        {"one", "two"},
    )
    assert found("lamps watts") == {"one"}, "each word, in whatever order and question"
    assert found("%") == {"one"} and found("_") == set()
    assert (
        "No title or question has “&lt;b&gt;”; answers are"
        in browser.get("/topics", params={"q": "<b>"}).text
    )


def test_a_topic_of_somebody_else_offers_no_rename(serve: Serve) -> None:
    service = serve(shared=True)
    service.user.ask("How many watts?", user="User_1", topic="one")
    assert "Rename this topic" in entered(service, "User_1").get("/thread?topic=one").text
    theirs = entered(service, "User_2").get("/thread?topic=one").text
    assert (
        "How many watts?" in theirs
        and "Rename this topic" not in theirs
        and "Delete this topic" not in theirs
    )


def test_a_topic_is_exported_as_markdown_and_json(service: Served) -> None:
    browser, other = entered(service, "User_1"), entered(service, "User_2")
    service.user.ask("How many watts?", user="User_1", topic="My lamps")
    source = {"Node": "hall", "Title": "Hall", "Quote": "nine watts", "Path": "hall.md", "Number": 1}
    service.engine.answer("How many watts?", "nine watts", topic="My lamps", Sources=[source])
    service.user.ask("And why?", user="User_1", topic="My lamps")
    file = browser.get("/thread/export", params={"topic": "My lamps"})
    assert file.headers["Content-Disposition"] == 'attachment; filename="My-lamps.md"'
    assert (
        "> How many watts?" in file.text and "nine watts" in file.text and "[1] Hall (hall.md)" in file.text
    )
    assert file.text.rstrip().endswith("(not answered yet)")
    given = browser.get("/thread/export", params={"topic": "My lamps", "form": "json"}).json()
    wire = service.user.get("get-topic-thread", Topic="My lamps").json()
    assert all(given["Queries"][number].items() >= each.items() for number, each in enumerate(wire))
    assert [each["Answer"] for each in given["Queries"]] == [["nine watts"], None]
    assert other.get("/thread/export", params={"topic": "My lamps"}).status_code == 404


def test_a_question_is_edited_and_asked_again(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, "How many wats?")
    service.engine.answer("How many wats?", "None.", topic=topic)
    assert f"/thread?topic={topic}&amp;edit=1#question" in browser.get(f"/thread?topic={topic}").text
    box = re.search(
        r'<textarea id="question"[^>]*>([^<]*)', browser.get(f"/thread?topic={topic}&edit=1").text
    )
    assert box is not None and box[1].strip() == "How many wats?"
    assert browser.get(f"/thread?topic={topic}&edit=7").status_code == 404


def test_a_form_needs_the_token_of_its_session(service: Served) -> None:
    browser, other = entered(service, "User_1"), entered(service, "User_1")
    topic = asked(browser)
    fields = {"topic": topic, "question": "x", "seq": "1", "fragment": "x", "type": "Promote Answer"}
    for path in POSTS:
        for csrf in ({}, {"csrf": ""}, {"csrf": other.csrf()}, {"csrf": "é" * 8}):
            assert browser.post(path, {**fields, **csrf}).status_code == 403, (path, csrf)
    assert browser.get(f"/thread?topic={topic}").text.count("<article") == 1


FROM_ELSEWHERE: tuple[dict[str, str], ...] = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "none"},
)


def test_a_form_of_another_site_does_nothing(service: Served) -> None:
    browser = entered(service, "User_1")
    fields = {"csrf": browser.csrf(), "question": "x", "name": "User_1", "secret": SECRETS["User_1"][1]}
    for path in (*POSTS, "/login"):
        for headers in FROM_ELSEWHERE:
            assert browser.post(path, fields, **headers).status_code == 403, (path, headers)
    assert "Nothing asked yet" in browser.get("/topics").text


def test_what_is_no_form_is_refused(service: Served) -> None:
    browser = entered(service, "User_1")
    said = {"Origin": service.url}
    sent = browser.session.post(f"{service.url}/ask", json={"question": "x"}, headers=said, timeout=120)
    assert sent.status_code == 415
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"question=%ff", b"\xff=1", b"&".join(b"a=1" for _ in range(60))):
        sent = browser.session.post(f"{service.url}/ask", data=body, headers={**said, **kind}, timeout=120)
        assert sent.status_code == 400, body
    assert browser.get("/ask").status_code == 405


# headers

PAGES = ("/login", "/topics", "/tree", "/node?id=hall", "/node?id=no", "/find?q=x", "/run?topic=x", "/admin")


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_strict_policy_and_is_kept_nowhere(service: Served, path: str) -> None:
    page = (Browser(service.url) if path == "/login" else entered(service, "User_1")).get(path)
    policy = dict(part.split(" ", 1) for part in page.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert "unsafe" not in str(policy)
    assert {name: page.headers[name] for name in HEADERS} == HEADERS
    assert not re.search(r"<script(?![^>]* src=)|<style| style=|\son\w+=|https?://", page.text)


def test_own_files_are_kept_for_long_under_an_address_of_their_content(service: Served) -> None:
    page = Browser(service.url).get("/login").text
    for address in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page)):
        found = requests.get(service.url + address, timeout=120)
        assert found.status_code == 200 and "immutable" in found.headers["Cache-Control"]
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert "http" not in re.sub(r'xmlns="[^"]+"', "", found.text), "nothing comes from elsewhere"
    for path in ("/static/..%2Fguard.py", "/static/__init__.py", "/static/nothing.js", "/static/"):
        assert requests.get(service.url + path, timeout=120).status_code == 404


def test_the_page_is_no_part_of_the_description_of_the_api(service: Served) -> None:
    paths = requests.get(f"{service.url}/openapi.json", timeout=120).json()["paths"]
    assert not {"/", "/login", "/topics", "/thread", "/node", "/static/{name}"} & set(paths)


# topics and threads


def test_a_question_is_asked_watched_answered_and_recommended(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser, "How many watts\r\nhas it?", category="hall", model="small")
    page = browser.get(f"/thread?topic={topic}").text
    assert "waiting for an engine" in page and "Category: hall" in page and "Model: small" in page
    claim = service.engine.get("get-new-queries").json()
    assert claim["Topic"] == topic and claim["Queries"] == [{"1": "How many watts\nhas it?"}]
    assert claim["Modifiers"] == {"1": {"Category": "hall"}} and claim["Model"] == {"1": "small"}
    step = {"Event": "route", "Node": ".", "Title": "house", "Choice": "hall", "Chosen": "<Hall>", "Offered": 4,
            "Reason": "it says <lamps>", "Text": "chose Hall",
            "RuledOut": [{"Node": "x", "Title": "Cellar", "Reason": "no lamps there"}]}  # fmt: skip
    service.engine.post("give-progress", {"Topic": topic, "Seq": 1, "Steps": [step]})
    walk = browser.get(f"/thread/walk?topic={topic}&seq=1&after=0").text
    assert "&lt;Hall&gt;" in walk and "it says &lt;lamps&gt;" in walk and "no lamps there" in walk
    assert "<lamps>" not in walk and "ruled out 1 of 4" in walk
    source = {"Node": "hall/lamp", "Title": "Lamp", "Quote": "has a bulb of nine watts.", "Path": None}
    service.engine.answer("How many watts\nhas it?", "**Nine** watts.", topic=topic, Sources=[source])
    page = browser.get(f"/thread?topic={topic}").text
    assert "<strong>Nine</strong> watts." in page and "answered" in page
    (link,) = set(re.findall(r'href="(/node\?id=hall%2Flamp&amp;topic=[^"]+)#quoted"', page))
    node = browser.get(link.replace("&amp;", "&")).text
    assert re.search(r'<mark class="line" data-n="2" id="quoted">has a bulb of nine watts.', node)
    assert node.count("<mark") == 1 and "&lt;script&gt;alert(1)" in node and "<script>alert" not in node
    sent = browser.send(
        "/recommend", topic=topic, seq="1", type="Make Correction", fragment="Ten watts.", comment="seen"
    )
    assert sent.status_code == 303 and "It is remembered" in browser.get(sent.headers["Location"]).text
    (kept,) = service.engine.get("get-recommendations", After="0").json()
    assert (kept["type"], kept["fragment"], kept["comment"], kept["on_behalf_of"]) == (
        *("Make Correction", "Ten watts.", "seen", "User_1"),
    )


def test_a_search_is_followed_by_events_from_where_it_was_cut_off(service: Served) -> None:
    browser = entered(service, "User_1")
    topic = asked(browser)
    service.engine.get("get-new-queries")
    for number in (1, 2, 3):
        steps = [{"Event": "tool", "Text": f"step {number}"}]
        service.engine.post("give-progress", {"Topic": topic, "Seq": 1, "Steps": steps})
    service.engine.answer("How many watts?", "Nine.", topic=topic)

    def texts(**given: object) -> tuple[list[str], list[str]]:
        said = browser.get(f"/thread/events?topic={topic}&seq=1", **given).text
        return re.findall(r'"Text": "([^"]+)"', said), re.findall(r"^id: (\d+)", said, re.M)

    all_texts, ids = texts()
    assert all_texts == ["step 1", "step 2", "step 3"]
    assert texts(headers={"Last-Event-ID": ids[1]})[0] == ["step 3"]
    said = browser.get(f"/thread/events?topic={topic}&seq=1&after={ids[0]}").text
    assert "step 1" not in said and "step 2" in said and "event: answer" in said


def test_topics_of_others_look_as_if_they_were_not_there(service: Served) -> None:
    one, two = entered(service, "User_1"), entered(service, "User_2")
    topic = asked(one)
    for path in ("/thread?topic={}", "/thread/question?topic={}&seq=1", "/thread/walk?topic={}&seq=1",
                 "/thread/events?topic={}&seq=1", "/run?topic={}&seq=1", "/node?id=hall&topic={}&seq=1"):  # fmt: skip
        theirs, missing = two.get(path.format(topic)), two.get(path.format("none"))
        assert theirs.status_code == missing.status_code == 404, path
        assert theirs.text.replace(topic, "none") == missing.text
    for path in ("/recommend", "/topic/delete"):
        fields = {"topic": topic, "seq": "1", "fragment": "x", "type": "Promote Answer"}
        assert two.send(path, **fields).status_code == 404
    sent = two.send("/ask", topic=topic, question="And mine?")
    assert sent.status_code == 403 and "belongs to somebody else" in sent.text and "And mine?" in sent.text
    assert topic not in two.get("/topics?of=User_1").text
    assert service.engine.get("get-recommendations", After="0").json() == []


def test_an_administrator_sees_all_topics_the_queue_and_the_users(service: Served) -> None:
    user, root = entered(service, "User_1"), entered(service, "Admin_1")
    topic = asked(user, "What is <queued>?")
    page = root.get("/admin").text
    assert "What is &lt;queued&gt;?" in page and ">waiting for an engine<" in page
    assert "Inference_1" in root.get("/admin/users").text
    service.engine.get("get-new-queries")
    held = root.get("/admin").text
    assert ">Inference_1</td>" in held and "Take away" in held
    assert root.send("/admin/release", topic=topic).status_code == 303
    assert "No engine holds a topic" in root.get("/admin").text
    assert root.send("/admin/release", topic=topic).status_code == 404
    assert user.send("/admin/release", topic=topic).status_code == 403
    assert user.send("/admin/requeue", topic=topic, seq="1").status_code == 403
    assert topic in root.get("/topics?of=User_1").text
    assert root.get(f"/thread?topic={topic}").status_code == 200
    asked(root, "And on?", topic=topic)
    assert service.user.get("get-topic-thread", Topic=topic).json()[1]["Query"] == "And on?"
    assert user.get("/admin").status_code == 403 and user.get("/runs").status_code == 403
    assert user.get("/run?id=x").status_code == 403


def test_a_refused_question_is_reported_and_not_lost(service: Served) -> None:
    browser = entered(service, "User_1")
    empty = browser.send("/ask", question=" ", category="hall")
    assert (
        empty.status_code == 422 and "The question is empty." in empty.text and 'value="hall"' in empty.text
    )
    long = browser.send("/ask", question="x", topic="t" * 300)
    assert long.status_code == 422 and "The name of the topic is too long" in long.text
    topic = asked(browser)
    follow = browser.send("/ask", question="x" * 100_001, topic=topic, back="thread")
    assert follow.status_code == 422 and "<article" in follow.text
    wrong = browser.send("/recommend", topic=topic, seq="1", fragment="x", type="Praise")
    assert wrong.status_code == 422 and "Promote Answer" in wrong.text and "<article" in wrong.text
    empty = browser.send("/recommend", topic=topic, seq="1", missing=" ", type="Add Missing Info")
    assert empty.status_code == 422 and "The text is empty." in empty.text and "<article" in empty.text
    assert (
        browser.send("/recommend", topic=topic, seq="9", fragment="x", type="Promote Answer").status_code
        == 404
    )


def test_a_topic_may_have_any_name(service: Served) -> None:
    browser = entered(service, "User_1")
    name = "../a b+c/ü?&#<x>"
    assert asked(browser, topic=name) == name
    page = browser.get("/topics").text
    (link,) = re.findall(r'href="(/thread\?topic=[^"]+)"', page)
    assert "&lt;x&gt;" in browser.get(link).text and "<x>" not in browser.get(link).text
    assert browser.send("/topic/delete", topic=name).status_code == 303
    assert "Nothing asked yet" in browser.get("/topics").text


def test_what_a_run_asks_is_answered_in_the_thread(service: Served) -> None:
    browser, other, root = entered(service, "User_1"), entered(service, "User_2"), entered(service, "Admin_1")
    topic = asked(browser)
    lease = service.engine.get("get-new-queries").json()["Lease"]
    questions = [
        {"Key": "k:1", "Question": "Which <hall>?"},
        {"Key": "k:2", "Question": "May it call?", "Kind": "permission"},
    ]
    parked = {"Topic": topic, "Seq": 1, "Lease": lease, "Questions": questions}
    assert service.engine.post("ask-person", parked).status_code == 200
    page = browser.get(f"/thread?topic={topic}").text
    assert "Which &lt;hall&gt;?" in page and 'value="yes"' in page and 'value="always"' not in page
    assert 'data-asked="1,2"' in page and "waits for an answer" in page
    assert 'value="always"' in root.get(f"/thread?topic={topic}").text
    assert "No engine holds a topic" in root.get("/admin").text
    assert root.send("/admin/release", topic=topic).status_code == 404, "a person has it, not an engine"
    said = {"topic": topic, "seq": "1"}
    assert other.send("/answer", **said, number="1", said="mine").status_code == 404
    assert browser.send("/answer", **said, number="2", said="always").status_code == 403
    assert browser.send("/answer", **said, number="2", said="perhaps").status_code == 422
    assert browser.send("/answer", **said, number="1", said="The upper one").status_code == 303
    assert service.engine.get("get-new-queries").json()["Topic"] is None, "the other question is open"
    assert browser.send("/answer", **said, number="2", said="yes").status_code == 303
    assert browser.send("/answer", **said, number="2", said="no").status_code == 409
    assert service.engine.get("get-new-queries").json()["Topic"] == topic
    page = browser.get(f"/thread?topic={topic}").text
    assert "The upper one" in page and '<textarea id="said' not in page


# the memory


def test_the_tree_and_its_nodes_are_shown_as_text(service: Served) -> None:
    browser = entered(service, "User_1")
    page = browser.get("/tree?id=hall%2Flamp").text
    assert page.index('data-id="."') < page.index('data-id="hall"') < page.index('data-id="hall/lamp"')
    assert "Lamp &lt;i&gt;" in page and "<i>" not in page
    assert "&lt;b&gt;Lamps&lt;/b&gt; &amp; doors" in browser.get("/node?id=hall").text
    assert "Lamp &lt;i&gt;" in browser.get("/find?q=watts+of+the+bulb").text
    missing = browser.get("/node?id=%3Cscript%3E")
    assert missing.status_code == 404 and "<script>" not in missing.text.replace("<script src", "")


def test_a_memory_says_who_told_it_and_when(serve: Serve, tree: Tree) -> None:
    remember(tree, "Deploys happen on Tuesdays.", who="Ann", evidence=False)
    browser = entered(serve(memory=tree), "User_1")
    page = browser.get("/node", params={"id": memories(tree)[0].id}).text
    assert (
        re.search(r"<dt>said by</dt><dd>Ann<.*<dt>when</dt><dd>\d{4}-", page, re.S) and "{&#39;" not in page
    )
    assert "<dt>added by</dt>" not in page and "<dt>said each time</dt>" not in page
    remember(tree, "Deploys happen on Tuesdays.", who="Bob", evidence=False)
    page = browser.get("/node", params={"id": memories(tree)[0].id}).text
    assert re.search(r"<dt>said each time</dt><dd>Ann, \d{4}-.*Bob, \d{4}-", page, re.S)


def test_a_server_without_a_tree_says_so(serve: Serve) -> None:
    browser = entered(serve(), "User_1")
    for path in ("/tree", "/node?id=.", "/find?q=x", "/tree/children"):
        page = browser.get(path)
        assert page.status_code == 404 and "started without a tree" in page.text


def test_a_question_whose_engine_vanished_waits_for_one_on_every_page(serve: Serve, tree: Tree) -> None:
    service = serve(memory=tree, lease_s=0.0)
    user, root = entered(service, "User_1"), entered(service, "Admin_1")
    topic = asked(user)
    assert service.engine.get("get-new-queries").json()["Topic"] == topic
    assert "waiting for an engine" in user.get(f"/thread?topic={topic}").text
    shown = root.get("/admin").text
    assert (
        "<dd>1</dd><dt>waiting for an engine</dt>" in shown and "<dd>0</dd><dt>being answered</dt>" in shown
    )
    assert ">waiting for an engine</td>" in shown and ">being answered</td>" not in shown


def test_what_is_not_there_is_a_page_for_people_and_json_for_programs(service: Served) -> None:
    user, nobody, html = entered(service, "User_1"), Browser(service.url), {"Accept": "text/html,*/*"}
    for path in (
        "/thread?topic=nope",
        "/node?id=nope",
        "/run?topic=nope&seq=1",
        "/nothing",
        "/static/nope.css",
    ):
        found = user.get(path, headers=html)
        assert (found.status_code, found.headers["Content-Type"][:9]) == (404, "text/html"), path
        assert "Go to your topics" in found.text and "Content-Security-Policy" in found.headers
    found = nobody.get("/nothing", headers=html)
    assert found.status_code == 404 and "Log in" in found.text and "There is no such page." in found.text
    assert user.get("/ask", headers=html).status_code == 405
    assert user.get("/nothing", headers={"Accept": "application/json"}).json() == {"detail": "Not Found"}
    assert "there is no GET /api/nothing" in user.get("/api/nothing", headers=html).json()["detail"]
    assert "did you mean" in (close := user.get("/node?id=hal", headers=html).text) and "?." not in close
