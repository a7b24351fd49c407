"""What people see of a search, of what they said and of each other, over real HTTP."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from metatree_agents.service.engine._origins import with_origins
from metatree_agents.service.engine.answering import said_of
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine
from metatree_agents.service.http import events
from metatree_agents.service.queue.thanks import WELCOME
from metatree_agents.service.web._exports import _below
from metatree_memory_tools import build_tree

from metatree import Node, Tree, search
from metatree.notes.notes import memories, remember

from .conftest import SECRETS, Served
from .test_engine import working
from .test_openai import client_of, say
from .test_pages import answered, buttons, learned
from .test_web import Browser, asked, entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
ANSWER = "The lamp in the hall has a bulb of nine watts."


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree.create(tmp_path / "house.db", title="house")
    made.add(Node(id="hall", title="Hall", content=f"# Lamps\n\n{ANSWER}\n"))
    return made


@pytest.fixture
def service(serve: Serve, tree: Tree) -> Served:
    return serve(memory=tree)


def words(page: str) -> str:
    """Return what a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


# how far a search is


@contextmanager
def watching(browser: Browser, topic: str) -> Iterator[Iterator[tuple[str, str]]]:
    """Watch a question: (name, data) of its events as they come."""
    with browser.get(f"/thread/events?topic={topic}&seq=1", stream=True) as answer:
        lines = (line.decode() for line in answer.iter_lines(chunk_size=1))

        def came() -> Iterator[tuple[str, str]]:
            name = ""
            for line in lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, line.removeprefix("data: ")

        yield came()


def test_an_open_thread_learns_who_searches(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BEAT_S", 0.05)
    user = entered(service, "User_1")
    topic = asked(user)
    with watching(user, topic) as came:
        assert next(came) == ("state", '{"Status": "Open", "Engines": false, "Attempts": 0}')
        service.other_engine.get("get-identity")
        assert next(came) == ("state", '{"Status": "Open", "Engines": true, "Attempts": 0}')
        claimed = service.engine.get("get-new-queries").json()
        assert next(came) == ("state", '{"Status": "Pending", "Engines": true, "Attempts": 1}')
        for page in (user.get(f"/thread?topic={topic}").text, user.get("/topics").text):
            assert "being answered" in page and "waiting for an engine" not in page
        assert "An engine (Inference_1) took it just now" in user.get(f"/thread?topic={topic}").text
        admin = words(entered(service, "Admin_1").get("/admin").text)
        assert admin.count("being answered") == 2 and "pending" not in admin
        handed = {"Topic": topic, "Lease": claimed["Lease"]}
        assert service.engine.post("hand-back", handed).status_code == 200
        assert next(came) == ("state", '{"Status": "Open", "Engines": true, "Attempts": 0}')
        for each in (service.engine, service.other_engine):
            assert each.post("leave", {}).status_code == 200
        assert next(came) == ("state", '{"Status": "Open", "Engines": false, "Attempts": 0}')
    assert "Nobody is searching" in user.get(f"/thread?topic={topic}").text
    assert service.user.post("leave", {}).status_code == 403


def test_an_engine_that_is_stopped_is_gone_at_once(service: Served, tree: Tree) -> None:
    async def work() -> None:
        name, (_, secret) = "Inference_1", SECRETS["Inference_1"]
        async with ServiceClient(service.url, name, secret) as client:
            engine = Engine(client, tree)
            working = asyncio.ensure_future(engine.run())
            while "yes" not in words(await asyncio.to_thread(lambda: root.get("/admin/engines").text)):
                await asyncio.sleep(0.05)
            engine.stop()
            await working

    root = entered(service, "Admin_1")
    asyncio.run(work())
    page = root.get("/admin/engines").text
    assert "Nobody is searching" in page and 'data-again="20"' in page
    assert not re.search(r">yes<", page)
    service.engine.get("get-identity")
    assert "Nobody is searching" not in root.get("/admin").text, "it is heard of again"


def test_an_engine_with_a_key_counts_as_soon_as_it_is_back(service: Served) -> None:
    key = {"Authorization": f"Bearer {service.keys['Inference_1']}"}
    root = entered(service, "Admin_1")
    for there in (True, False, True):
        if there:
            assert requests.get(f"{service.url}/api/get-identity", headers=key, timeout=60).ok
        else:
            assert requests.post(f"{service.url}/api/leave", headers=key, json={}, timeout=60).ok
        assert ("Nobody is searching" in root.get("/admin").text) is not there


# what an answer is from

HANDBOOK = {
    "holidays.md": "# Holidays\n\nEverybody has 28 days of holiday a year. Up to five days may be carried over"
    " into the next year; they must be taken by 31 March."
    "\n\n## Sick leave\n\nWhoever is ill tells their team by nine o'clock.\n",
    "oncall.md": "# Who is on call\n\nMonday to Wednesday: Ines Ferro. Thursday to Sunday: Tom Berg.\n\n"
    "Who is on call answers within 15 minutes. A night with a call gives half a day off.\n",
}


@pytest.fixture
def handbook(tmp_path: Path) -> Iterator[Tree]:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, text in HANDBOOK.items():
        (folder / name).write_text(text)
    with build_tree(folder) as made:
        yield made


def test_a_promoted_answer_keeps_the_lines_that_it_is_from(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    user = entered(service, "User_1")
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over?")
        first = service.user.get("check-query", Topic=topic, Seq="1").json()
        (source,) = first["Sources"]
        assert source["Place"] == "holidays.md" and source["Lines"] == [3, 3]
        promote = buttons(user.get(f"/thread?topic={topic}").text, "/recommend")[0]
        assert user.post("/recommend", promote).status_code == 303
    learned(service, handbook)
    (memory,) = memories(handbook)
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over, and how?")
        sources = service.user.get("check-query", Topic=topic, Seq="1").json()["Sources"]
    assert [each["Number"] for each in sources] == [1, 2] and sources[1]["Node"] == memory.id
    (file,) = [each for each in sources if each["Place"] == "holidays.md"]
    assert (file["Lines"], file["SaidBy"], file["Number"]) == ([3, 3], "", 1)
    page = words(user.get(f"/thread?topic={topic}").text)
    assert "holidays.md, line 3" in page and "called helpful by User_1, " in page
    assert ", to the question How many days may be carried over?" in page and "((" not in page
    assert "taken back since" not in page
    assert (
        user.post("/memories/undo", buttons(user.get("/memories").text, "/memories/undo")[0]).status_code
        == 303
    )
    page = user.get(f"/thread?topic={topic}").text
    assert ", taken back since" in words(page)
    links = re.findall(r'<a class="source-card" href="([^"]*)"', page)
    assert len(links) == 1 and "memory" not in links[0], "what is taken back leads nowhere"
    gone = user.get(f"/node?id=memory:0123456789&topic={topic}&seq=1")
    assert gone.status_code == 404 and f'href="/thread?topic={topic}#q1">Back to the answer<' in gone.text
    # Where the file says it no longer, it is no source any more.
    assert len(with_origins(handbook, [{"Node": memory.id, "Number": 1}])) == 2
    handbook.update(
        replace(handbook.get(memory.id), attributes={"from": [{"node": file["Node"], "quote": "gone"}]})
    )
    assert with_origins(handbook, [{"Node": memory.id, "Number": 1}]) == [{"Node": memory.id, "Number": 1}]


def test_a_memory_names_no_topic_that_is_not_the_readers(service: Served) -> None:
    one, two = entered(service, "User_1"), entered(service, "User_2")
    secret = asked(one, "Is Bea pregnant?")
    said = f"said by User_1 on 2026-11-24 (Make Correction, topic {secret})"
    for browser in (one, two):
        topic = asked(browser, "How many watts?")
        sources = [{"Node": "m", "Title": "A memory", "Quote": ANSWER, "Number": 1, "SaidBy": said}]
        service.engine.answer("How many watts?", ANSWER, topic=topic, Sources=sources, End="answered")
        page = browser.get(f"/thread?topic={topic}").text
        assert "correction by User_1, 2026-11-24" in words(page)
        assert (secret in page) is (browser is one) and ("Is Bea pregnant?" in page) is (browser is one)


def test_a_short_section_comes_whole(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    with working(service, handbook):
        topic = asked(entered(service, "User_1"), "Which colour has the telephone of who is on call?")
        found = service.user.get("check-query", Topic=topic, Seq="1").json()
    assert found["End"] == "closest"
    (close,) = [each for each in found["Closest"] if each["Place"] == "oncall.md"]
    assert "Tom Berg" in close["Quote"] and "half a day off" in close["Quote"] and close["Lines"] == [1, 5]


def test_a_question_without_words_of_its_own_shows_what_was_quoted_before(
    serve: Serve, handbook: Tree
) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    user = entered(service, "User_1")
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over?")
        user.send("/ask", question="and when does that end?", topic=topic)
        service.user.get("check-query", Topic=topic, Seq="1")
        found = service.user.get("check-query", Topic=topic, Seq="2").json()
        user.send("/ask", question="Who won the cup in 1954?", topic=topic)
        other = service.user.get("check-query", Topic=topic, Seq="3").json()
        user.send("/ask", question="and where is it written down again?", topic=topic)
        written = service.user.get("check-query", Topic=topic, Seq="4").json()
    assert (other["End"], other["Closest"]) == ("nothing", []), "it names something that is not there"
    assert (
        "31 March" in written["Closest"][0]["Quote"] and "say again what it is about" in written["Answer"][0]
    )
    assert found["End"] == "closest"
    before = found["Closest"][0]
    assert (
        "31 March" in before["Quote"]
        and before["Place"] == "holidays.md"
        and before["Question"] == found["Query"]
    )
    page = words(user.get(f"/thread?topic={topic}").text)
    assert "First below stands what the answer before it quoted. Closest passages:" in page


SHELLS = {
    "completion.md": "# Shell completion\n\nCompletion is there for bash, zsh and fish: these shells work.\n",
    "adding.md": "# Adding\n\nWhich shells does that work for? The shells that work are yours.\n",
}


def test_a_follow_up_is_read_in_its_topic_on_the_page_and_in_chats(serve: Serve, tmp_path: Path) -> None:
    first, second = "How does completion work?", "Which shells does that work for?"
    read_as = "Read as a question about “How does completion work?”"
    for name, text in SHELLS.items():
        (tmp_path / name).write_text(text)
    with build_tree(tmp_path) as made:
        service = serve(memory=made, answer_timeout_s=30.0, claim_timeout_s=5.0)
        user = entered(service, "User_1")
        with working(service, made):
            topic = asked(user, first)
            user.send("/ask", question=second, topic=topic)
            found = service.user.get("check-query", Topic=topic, Seq="2").json()
            chat = client_of(service)
            held_elsewhere = say(chat, first, "By a script.", second).choices[0].message.content
            alone = say(chat, second).choices[0].message.content
    assert found["Notes"][0].startswith(read_as)
    shown = [*found["Sources"], *found["Closest"]]
    assert shown[0]["Place"] == "completion.md" and found["Query"] == second
    assert read_as in words(user.get(f"/thread?topic={topic}").text)
    assert "Read as a question about" in held_elsewhere and "bash, zsh and fish" in held_elsewhere
    assert "Read as a question about" not in alone


def test_thanks_are_no_question_and_the_next_one_refers_to_what_was_asked_before(
    serve: Serve, tmp_path: Path
) -> None:
    for name, text in SHELLS.items():
        (tmp_path / name).write_text(text)
    with build_tree(tmp_path) as made:
        service = serve(memory=made, answer_timeout_s=30.0, claim_timeout_s=5.0)
        user = entered(service, "User_1")
        with working(service, made):
            topic = asked(user, "How does completion work?")
            for text in ("Thanks, that helps!", "Which shells does that work for?"):
                user.send("/ask", question=text, topic=topic)
            thanked, after = (
                service.user.get("check-query", Topic=topic, Seq=seq).json() for seq in ("2", "3")
            )
    assert (thanked["Answer"], thanked["End"], thanked["Sources"]) == ([WELCOME], "answered", [])
    assert after["Notes"][0].startswith("Read as a question about “How does completion work?”")
    page = user.get(f"/thread/question?topic={topic}&seq=2").text
    assert WELCOME in words(page) and ">answered<" in page and "not answered" not in page
    assert "Helpful" not in page and "How it was found" not in page


def test_what_is_found_shows_the_line_and_not_its_heading_again(serve: Serve, handbook: Tree) -> None:
    page = entered(serve(memory=handbook), "User_1").get("/find?q=holiday").text
    lines = [html.unescape(each) for each in re.findall(r'<p class="line">([^<]*)</p>', page)]
    assert lines and not any(each.startswith("#") for each in lines) and "28 days of holiday" in lines[0]


def test_the_lines_of_a_node_are_those_that_are_shown(serve: Serve, handbook: Tree) -> None:
    node = next(node for _, node in handbook.walk() if node.title.startswith("Holidays") and node.lines)
    page = entered(serve(memory=handbook), "User_1").get(f"/node?id={quote(node.id)}").text
    assert "holidays.md, lines 1–4" in page or "holidays.md, lines 1–3" in page
    last = re.findall(r'class="line" data-n="(\d+)"', page)[-1]
    assert f"lines 1–{last}" in page


# what was said of answers


def test_memories_are_listed_once_and_by_their_words(service: Served, tree: Tree) -> None:
    user = entered(service, "User_1")
    topic = answered(service, user)
    form = buttons(user.get(f"/thread?topic={topic}").text, "/recommend")[2]
    said = {"type": "Make Correction", "fragment": ANSWER, "comment": "It has ten watts."}
    assert user.post("/recommend", {**form, **said}).status_code == 303
    remember(tree, "Deploys are on Tuesdays.", who="User_1", evidence=False)
    learned(service, tree)
    thread = words(user.get(f"/thread?topic={topic}").text)
    assert "Corrected by User_1, just now: It has ten watts." in thread
    page = user.get("/memories").text
    above, _, below = page.partition(">Memories</h2>")
    assert ">It has ten watts.</a>" in above and "just now" in above and "(UTC)" not in page
    assert "It has ten watts." not in below and "1 more is from the recommendations above" in below
    assert ">Deploys are on Tuesdays.</a>" in below and len(buttons(below, "/memories/forget")) == 1
    other = entered(service, "User_2").get("/memories").text.partition(">Memories</h2>")[2]
    assert "It has ten watts." in other and not buttons(other, "/memories/forget")
    (undo,) = buttons(above, "/memories/undo")
    assert user.post("/memories/undo", undo).status_code == 303
    below = user.get("/memories").text.partition(">Memories</h2>")[2]
    assert "<del>It has ten watts.</del>" in below and len(buttons(below, "/memories/forget")) == 1
    learned(service, tree)
    assert "ten watts" not in user.get("/memories").text


def test_each_part_of_a_thread_has_a_name_of_its_own(service: Served) -> None:
    user = entered(service, "User_1")
    topic = answered(service, user)
    passage = {
        "Question": "Who?",
        "Node": "hall",
        "Title": "Hall",
        "Place": "hall",
        "Lines": [1, 1],
        "Quote": ANSWER,
        "Score": 0.1,
    }
    source = {"Node": "hall", "Title": "Hall", "Quote": ANSWER, "Number": 1}
    for seq, text, given in (
        (2, "How bright?", {"Sources": [source], "End": "answered"}),
        (3, "Who?", {"End": "closest", "Open": ["Who?"], "Closest": [passage]}),
        (
            4,
            "Who else?",
            {"End": "closest", "Open": ["Who else?"], "Closest": [{**passage, "Question": "Who else?"}]},
        ),
    ):
        user.send("/ask", question=text, topic=topic)
        service.engine.answer(text, ANSWER, topic=topic, seq=seq, **given)
    names = re.findall(
        r'<section class="(?:sources|closest)" aria-label="([^"]*)"', user.get(f"/thread?topic={topic}").text
    )
    assert len(names) == 4 == len(set(names)), names


def test_topics_that_look_alike_are_told_apart(service: Served) -> None:
    user = entered(service, "User_1")
    first, second, other = asked(user), asked(user), asked(user, "Who pays?")
    user.send("/ask", question="And in the bath?", topic=second)
    page = user.get("/topics").text
    rows = {
        topic: words(row)
        for row in re.findall(r"<li>\s*<a href=.*?</li>", page, re.S)
        for topic in (first, second, other)
        if f"topic={quote(topic)}" in row
    }
    begun = re.compile(r"begun \d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d UTC")
    assert begun.search(rows[first]) and "last:" not in rows[first]
    assert begun.search(rows[second]) and "last: And in the bath?" in rows[second]
    assert "begun" not in rows[other]
    for topic in (first, second):
        user.send("/topic/rename", topic=topic, title="Lamps")
    page = words(user.get("/topics").text)
    assert "asks: How many watts?" in page and "last: And in the bath?" in page
    file = user.get("/thread/export", params={"topic": second})
    assert re.search(
        r'filename="Lamps-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.md"', file.headers["Content-Disposition"]
    )
    assert re.match(r"# Lamps\n\n\*Topic \S+, begun \d{4}-\S+ UTC\*\n", file.text)


def test_an_answer_that_was_added_is_said_in_the_list_as_in_the_topic(service: Served) -> None:
    user = entered(service, "User_1")
    topic = asked(user, "Who pays?")
    service.engine.answer("Who pays?", "Nobody knows.", topic=topic, End="nothing")
    pages = ("/topics", f"/thread?topic={topic}")
    assert all("not answered" in words(user.get(page).text) for page in pages)
    user.send("/recommend", topic=topic, seq="1", type="Add Missing Info", fragment="Ann pays.")
    shown = [words(user.get(page).text) for page in pages]
    assert all("answer added since" in page and "not answered" not in page for page in shown)
    (undo,) = buttons(user.get(pages[1]).text, "/memories/undo")
    assert user.post("/memories/undo", undo).ok
    assert all("not answered" in words(user.get(page).text) for page in pages), "it was taken back"


def test_an_export_says_what_it_is_of_who_asked_and_what_was_said_of_it(service: Served) -> None:
    user = entered(service, "User_1")
    topic = answered(service, user)
    user.send("/topic/rename", topic=topic, title="The *lamps*")
    assert user.post("/recommend", buttons(user.get(f"/thread?topic={topic}").text, "/recommend")[0]).ok
    user.send("/ask", question="And who pays?", topic=topic)
    lost = {"End": "nothing", "Think": ["read Hall: nothing of use"]}
    service.engine.answer("And who pays?", "Nobody knows.", topic=topic, seq=2, **lost)
    file = user.get("/thread/export", params={"topic": topic})
    assert 'filename="The-lamps-20' in file.headers["Content-Disposition"], (
        "with the time, as of its namesakes"
    )
    assert file.text.startswith("# The \\*lamps\\*\n\n*Topic ")
    assert "\n\n## Question 1\n\n> How many watts?\n\n*Asked by User\\_1, 20" in file.text
    assert "\n- Helpful, says User\\_1, 20" in file.text
    assert file.text.rstrip().endswith("What the search did:\n\n1. read Hall: nothing of use")
    given = user.get("/thread/export", params={"topic": topic, "form": "json"}).json()
    assert given["Title"] == "The *lamps*"
    first, second = given["Queries"]
    assert (first["AskedBy"], first["Recommended"][0]["Type"]) == ("User_1", "Promote Answer")
    assert second["Recommended"] == [] and not any(" " in name for name in first)


# narrow windows, and what is asked first


def test_every_cell_has_its_name_and_what_has_no_way_back_is_asked_first(service: Served) -> None:
    root = entered(service, "Admin_1")
    page = root.get("/admin/users").text
    for name in ("Name", "Role", "Last seen (UTC)"):
        assert f'role="cell" data-name="{name}"' in page
    asked_first = re.findall(r"<details class=\"asks-first\">.*?</details>", page, re.S)
    removes = [each for each in asked_first if 'action="/admin/users/remove"' in each]
    assert len(removes) == len(buttons(page, "/admin/users/remove")) == 5, "all but the administrator"
    assert any("Take User_1 out? Secret, keys and log-ins end" in each for each in removes)
    assert all('action="/admin/users/secret"' in page for each in asked_first)
    assert root.get("/admin/users/add").url.endswith("/admin/users")
    added = root.send("/admin/users/add", name="Ann", role="user").text
    assert re.search(r'href="/admin/users" aria-current="page"', added)


def test_lines_of_words_are_wrapped_and_those_of_code_are_not(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Holidays\n\nEverybody has 28 days of holiday a year.\n")
    (tmp_path / "b.py").write_text("def holidays():\n    return 28\n")
    with build_tree(tmp_path) as built:
        page = entered(serve(memory=built), "User_1")
        of = {
            path: next(node for _, node in built.walk() if node.path == path and node.has_content)
            for path in ("a.md", "b.py")
        }
        assert 'class="lines prose"' in page.get(f"/node?id={of['a.md'].id}").text
        assert 'class="lines"' in page.get(f"/node?id={of['b.py'].id}").text


# people who come and go


def test_a_new_user_of_an_old_name_gets_no_topics_unasked(service: Served) -> None:
    root, old = entered(service, "Admin_1"), entered(service, "User_1")
    topic = asked(old, "Whose lamp is this?")
    assert "What they asked stays" in root.send("/admin/users/remove", name="User_1").text
    page = root.get("/admin/users").text
    assert "Topics of people who are no users" in page and 'href="/topics?of=User_1"' in page
    refused = root.send("/admin/users/add", name="User_1", role="user")
    assert refused.status_code == 409 and "User_1 was here before and left 1 topic:" in refused.text
    assert 'value="User_1"' in refused.text
    keep = "show 1 topic to the new User_1"
    shown = root.send("/admin/users/add", name="User_1", role="user", old=keep).text
    assert "User_1 sees 1 topic of the User_1 before." in shown
    secret = re.findall(r'class="shown"[^>]*>([^<]+)<', shown)[0]
    again = Browser(service.url)
    assert again.log_in("User_1", html.unescape(secret)).status_code == 303
    assert "Whose lamp is this?" in again.get("/topics").text
    assert "no users" not in root.get("/admin/users").text
    root.send("/admin/users/remove", name="User_1")
    (form,) = buttons(root.get("/admin/users").text, "/admin/users/delete-left")
    assert "1 topic of User_1: deleted." in root.post("/admin/users/delete-left", form).text
    assert root.get(f"/thread?topic={topic}").status_code == 404
    assert root.post("/admin/users/delete-left", form).status_code == 404
    assert root.send("/admin/users/add", name="User_1", role="user").status_code == 200


def test_what_a_former_user_left_is_deleted_only_where_that_was_chosen_for_the_name(service: Served) -> None:
    root, old = entered(service, "Admin_1"), entered(service, "User_1")
    topics = [asked(old, f"Whose is lamp {number}?") for number in range(2)]
    root.send("/admin/users/remove", name="User_1")

    def there() -> bool:
        return all(root.get(f"/thread?topic={topic}").status_code == 200 for topic in topics)

    refused = root.send("/admin/users/add", name="User_1", role="user")
    assert "left 2 topics: say below what becomes of them, or choose" in refused.text
    (field,) = re.findall(r'<select[^>]* name="old">(.*?)</select>', refused.text)
    names = html.unescape(field).replace("</option>", "").split("<option")[1:]
    assert names[0] == ' value="">not chosen yet' and "selected" not in field
    (delete,) = (each[1:] for each in names if "delete" in each)
    for unclear in ("", "not chosen yet", delete.replace("User_1", "User_7"), delete.replace("2", "1")):
        again = root.send("/admin/users/add", name="User_1", role="user", old=unclear)
        assert again.status_code == 409 and there(), unclear
    assert 'name="old"' not in root.send("/admin/users/add", name="no name", role="user").text
    added = root.send("/admin/users/add", name="User_1", role="user", old=delete)
    assert "2 topics of the User_1 before: deleted." in added.text and not there()


def test_topics_of_others_are_listed_where_they_are_shared(serve: Serve, tree: Tree) -> None:
    for shared in (True, False):
        service = serve(memory=tree, shared=shared)
        one, two = entered(service, "User_1"), entered(service, "User_2")
        topic = asked(one, f"Whose lamp, shared {shared}?")
        mine, others = two.get("/topics").text, two.get("/topics?others=1").text
        assert ("Topics of others" in mine) is ("Topics of others" in others) is shared
        assert (f"shared {shared}?" in others) is shared and f"shared {shared}?" not in mine
        copied = one.get(f"/thread?topic={topic}").text
        assert f'id="address">{service.url}/thread?topic={topic}<' in copied and "Copy link" in copied
        assert ("Everybody who logs in here may read this topic." in copied) is shared
        assert shared or "Only you and administrators may open this topic." in copied


def test_hidden_topics_are_counted(serve: Serve, tree: Tree) -> None:
    service = serve(trees={"house": tree})
    assert service.admin.post("admin/set-tree", {"Name": "house"}).ok
    right = {"Tree": "house", "Who": "User_1", "May": True}
    assert service.admin.post("admin/set-tree-right", right).ok
    user, root = entered(service, "User_1"), entered(service, "Admin_1")
    asked(user, "How many watts?")
    assert "hidden" not in words(user.get("/topics").text)
    out = root.send("/admin/trees/right", tree="house", who="User_1").text
    assert "User_1 may not ask house any more. This hides 1 topic from who asked." in words(out)
    assert "1 topic is hidden: it searched a tree that you may not ask any more." in words(
        user.get("/topics").text
    )


def test_a_key_has_a_name_and_says_where_it_goes(service: Served) -> None:
    user, root = entered(service, "User_1"), entered(service, "Admin_1")
    made = user.send("/account/key", label=" my  <laptop> ")
    assert "my &lt;laptop&gt;" in made.text and "(what it is for, such as: my laptop)" in made.text
    (key,) = re.findall(r'class="shown"[^>]*>([^<]+)<', made.text)
    example = html.unescape(re.findall(r'<pre class="example"[^>]*>(.*?)</pre>', made.text, re.S)[0])
    assert f"OPENAI_BASE_URL={service.url}/v1" in example and f"OPENAI_API_KEY={key}" in example
    curl = re.findall(r'curl -H "Authorization: Bearer (\S+)" (\S+)$', example, re.M)
    assert (
        requests.get(curl[0][1], headers={"Authorization": f"Bearer {curl[0][0]}"}, timeout=60).status_code
        == 200
    )
    assert "/v1/chat/completions" in example and "Your question?" in example
    page = user.get("/account").text
    assert (
        "End: the key &#39;my &lt;laptop&gt;&#39;" in page
        and "Programs that send this key are refused from then on" in page
    )
    assert "my &lt;laptop&gt;" in root.get("/admin/keys?of=User_1").text
    refused = user.send("/account/key", label="my laptop " * 7)
    assert refused.status_code == 422 and "The name of a key has at most 60 characters" in words(refused.text)
    given = root.send("/admin/keys/add", name="User_2", label="cron").text
    assert ">cron<" in given and "OPENAI_BASE_URL" in given


def test_a_key_without_a_name_says_when_it_was_made(service: Served) -> None:
    user, root = entered(service, "User_1"), entered(service, "Admin_1")
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    for page in (user.get("/account").text, root.get("/admin/keys").text):
        assert f">unnamed, made on {day}</td>" in page
    # The form offers a name, and so does a button without a form.
    offered = re.search(r'name="label" value="([^"]*)" required', user.get("/account").text)
    assert offered is not None and re.fullmatch(r"key \d+", offered[1])
    assert f">{offered[1]}</td>" in user.send("/account/key", label="").text
    assert re.search(r">key \d+</td>", root.send("/admin/keys/add", name="User_2").text)


def test_a_topic_of_somebody_else_is_as_if_it_were_not_there(service: Served) -> None:
    service.user.ask("Is Bea pregnant?", topic="is-bea-pregnant", user="User_1")
    for route, more in (
        ("get-topic-thread", {}),
        ("check-query", {"Seq": "1"}),
        ("get-lookups", {}),
        ("events", {"Seq": "1"}),
    ):
        theirs = service.other_user.get(route, Topic="is-bea-pregnant", **more)
        none = service.other_user.get(route, Topic="none", **more)
        assert (theirs.status_code, theirs.text) == (404, none.text), route


def test_how_a_question_was_read_is_said_everywhere(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    user = entered(service, "User_1")
    with working(service, handbook):
        topic = asked(user, "How many holydays may be carried over?")
        found = service.user.get("check-query", Topic=topic, Seq="1").json()
    (note,) = found["Notes"]
    assert note.startswith("Read as: How many holiday")
    assert note in words(user.get(f"/thread?topic={topic}").text)
    assert note in user.get("/thread/export", params={"topic": topic}).text


def test_a_note_on_the_language_of_a_question_is_a_sentence(serve: Serve, handbook: Tree) -> None:
    service = serve(answer_timeout_s=30.0, claim_timeout_s=5.0)
    with working(service, handbook):
        service.user.ask("Wann werden die Fenster im Treppenhaus geputzt?", topic="T", user="User_1")
        found = service.user.get("check-query", Topic="T", Seq="1").json()
    assert found["Notes"] == ["The question is in German; the texts are in English."]


def test_what_is_said_of_an_answer_has_one_name(service: Served) -> None:
    user = entered(service, "User_1")
    topic = answered(service, user)
    flag = buttons(user.get(f"/thread?topic={topic}").text, "/recommend")[1]
    assert user.post("/recommend", flag).status_code == 303
    page = user.get(f"/thread?topic={topic}").text
    assert "Not helpful, says User_1, just now" in words(page) and ">Flag as Off Topic<" not in page
    assert (
        'value="Make Correction" required checked' in page
        and 'value="Promote Answer" required checked' not in page
    )
    assert "Not helpful" in words(user.get("/memories").text)
    assert user.post("/recommend", {**flag, "comment": "It is about lamps."}).status_code == 303
    page = words(user.get(f"/thread?topic={topic}").text)
    assert "Not helpful, says User_1, just now: It is about lamps." in page


def test_what_a_person_said_is_among_what_comes_close(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"part{number}.md").write_text(
            f"# Shells, part {number}\n\nA shell of part {number} reads the configuration of shells.\n\n"
            f"Which shells read a file of shells is written in table {number}.\n"
        )
    with build_tree(tmp_path) as built:
        said = "Click completes for bash, zsh, fish and powershell: these shells."
        remember(
            built, said, title="Which does it work for?", who="User_1", source="Make Correction, topic x"
        )
        for question, is_near in (
            ("Which shells are painted by the gardener?", True),
            ("Which configuration is painted by the gardener?", False),
        ):
            result = search(question, tree=built)
            ending = said_of(built, result).ending
            assert ending.end == "closest" and len(result.closest) == 3
            assert all(each.node not in [node.id for node in memories(built)] for each in result.closest)
            assert [each["Quote"] for each in ending.closest[:3]].count(said) == is_near


def test_a_category_is_said_to_be_where_a_search_begins(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    user = entered(service, "User_1")
    with working(service, handbook):
        topic = asked(user, "How many days may be carried over?", category="oncall.md")
        sources = service.user.get("check-query", Topic=topic, Seq="1").json()["Sources"]
    assert [each["Path"] for each in sources] == ["holidays.md"], "another part answers"
    page = words(user.get("/topics").text)
    assert "the search begins there, and goes on elsewhere if that part does not answer" in page


def test_runs_and_figures_say_what_was_not_answered(serve: Serve, handbook: Tree) -> None:
    service = serve(memory=handbook, answer_timeout_s=30.0, claim_timeout_s=5.0)
    root = entered(service, "Admin_1")
    with working(service, handbook):
        for text in ("How many days may be carried over?", "Who painted the Mona Lisa?"):
            topic = asked(root, text)
            service.admin.get("check-query", Topic=topic, Seq="1")
    runs = root.get("/runs").text
    assert 'class="state unanswered">not answered<' in runs and 'class="state done">answered<' in runs
    assert "exhausted" not in runs
    figures = re.sub(r"\s+", "", root.get("/admin").text)
    assert "<dd>1</dd><dt>answered</dt>" in figures and "<dd>1</dd><dt>notanswered</dt>" in figures
    assert root.get("/topics").text.count(">not answered<") == 1


def test_a_message_is_shown_with_those_before_and_after_it(serve: Serve, tmp_path: Path) -> None:
    lines = [f"17/05/2024, 14:{minute} - Ann: Message number {minute}.\n" for minute in range(10, 20)]
    (tmp_path / "chat.txt").write_text("".join(lines))
    with build_tree(tmp_path) as made:
        user = entered(serve(memory=made), "User_1")
        turns = [node.id for _, node in made.walk() if node.kind == "turn"]
        first, middle = (words(user.get(f"/node?id={quote(turns[at])}").text) for at in (0, 5))
        assert "Before and after it" in first and "Before and after it" in middle
        said = [f"Message number {number}." in middle for number in range(10, 20)]
        assert said == [False, False, *[True] * 7, False]
        assert "Message number 14." not in first


def test_headings_of_an_answer_stand_below_its_question_in_an_export() -> None:
    text = "# Big\n\ntext\n\n```\n# no heading\n```\n\n## Small"
    assert _below(text) == "### Big\n\ntext\n\n```\n# no heading\n```\n\n#### Small"
