"""Web pages as sources, served on loopback: sections, links, tools, what is kept, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.web._links import Link, best_link, link_listing, links_of
from metatree_memory_tools.web._page import page_id, read_page
from metatree_memory_tools.web.tools import find_in_page, follow_link, links_of_page, page_in

from metatree import SearchResult, Tree, search
from metatree.errors import ToolFailed
from metatree.testing._web_server import Reply, WebServer
from metatree.trees.source_types import SourceRef, load_source_type

pytestmark = pytest.mark.integration

HOME = """<!doctype html><html><head><title>City Library</title>
<meta name="description" content="The library of the city."></head><body>
<nav><a href="/">Home</a> <a href="hours">Opening hours</a> <a href="/contact#form">Contact us</a></nav>
<main><h1>City Library</h1><p>Welcome. We lend books, music and films.</p>
<h2>Membership</h2><p>A card costs 12 euros a year.</p><p>Children pay nothing for a card.</p>
<h2>Reading rooms</h2><p>They are on the second floor. <a href="http://169.254.169.254/meta">Machine</a>
<a href="file:///etc/passwd">File</a> <a href="javascript:alert(1)">Script</a></p></main></body></html>"""
HOURS = """<title>Opening hours</title><h1>Opening hours</h1>
<p>On Saturday the library opens at 10:30 and closes at 16:00.</p><p><a href="/">City Library</a></p>"""


@pytest.fixture
def server() -> Iterator[WebServer]:
    routes: dict[str, Any] = {
        "/": Reply(HOME, headers={"ETag": '"1"'}),
        "/hours": HOURS,
        "/contact": "<h1>Contact</h1><p>Call 555-1234.</p>",
    }
    with WebServer(routes) as running:
        yield running


@pytest.fixture
def tree(server: WebServer, tmp_path: Path) -> Iterator[Tree]:
    source = SourceRef(f"{server.url}/", {"allow": [server.host]}, "library")
    with build_tree(source, out=tmp_path / "tree") as built:
        yield built


def _steps(result: SearchResult) -> list[tuple[str, str | None]]:
    return [(e.event, e.node) for e in result.trace if e.event in ("tool", "create", "read")]


def test_a_page_becomes_sections_whose_text_is_kept(server: WebServer, tree: Tree) -> None:
    (top,) = tree.children()
    assert (top.id, top.title, top.kind) == ("library", "City Library", "page")
    assert top.description.startswith(
        "City Library: The library of the city. Sections: Membership, Reading rooms"
    )
    assert top.attributes["url"] == f"{server.url}/"
    server.routes.clear()  # later reads are of what was seen
    assert tree.content("library/membership") == (
        "Membership\nA card costs 12 euros a year.\n\nChildren pay nothing for a card."
    )
    result = search("How much does a card cost?", tree=tree)
    assert "A card costs 12 euros a year." in str(result.answer)


def test_a_question_that_the_page_does_not_answer_is_answered_by_following_a_link(
    server: WebServer, tree: Tree
) -> None:
    question = "When does the library open on Saturday?"
    assert search(question, tree=tree, own_tools=False).ended == "exhausted"
    result = search(question, tree=tree)
    assert "On Saturday the library opens at 10:30 and closes at 16:00." in str(result.answer)
    hours = f"library/page:{server.url}/hours"
    assert _steps(result)[-3:] == [("tool", hours), ("create", hours), ("read", hours)]
    call = next(entry for entry in result.trace if entry.event == "tool")
    assert call.data["tool"] == "follow_link" and call.data["arguments"] == {"query": question}
    stored = tree.get(hours)
    assert (stored.title, stored.kind, tree.parent(hours)) == ("Opening hours", "page", "library")
    provenance = stored.provenance
    assert (provenance["from"], provenance["link"], provenance["url"]) == (
        f"{server.url}/",
        "Opening hours",
        f"{server.url}/hours",
    )
    assert provenance["tool"] == "follow_link" and provenance["run"] == result.run_id
    before = server.paths().count("/hours")
    again = search(question, tree=tree)
    assert again.answer == result.answer and server.paths().count("/hours") == before


def test_a_page_is_in_a_tree_once(server: WebServer, tree: Tree) -> None:
    top = tree.get("library")
    made = follow_link(top, tree, "opening hours")
    assert page_in(tree, f"{server.url}/hours") is None
    tree.add(made, parent="library")
    assert follow_link(top, tree, f"{server.url}/hours#today").id == made.id
    assert follow_link(tree.get(made.id), tree, "City Library").id == "library", (
        "the way back leads to what is there"
    )
    assert server.paths().count("/hours") == 1


def test_a_search_enters_a_page_that_is_there_by_another_way(server: WebServer, tree: Tree) -> None:
    """Two calls that lead to the same page make one node of it."""
    top = tree.get("library")
    made = follow_link(top, tree, "opening hours")
    tree.add(made, parent="library")
    tree.move(made.id, tree.root)
    result = search("Is it open on Saturday?", tree=tree, start_node="library")
    pages = [node.id for _, node in tree.walk() if node.kind == "page"]
    assert sorted(pages) == ["library", made.id]
    assert "opens at 10:30" in str(result.answer)
    assert [e.event for e in result.trace if e.event in ("tool", "create", "missed_node")] == ["tool"]


def test_finding_in_a_page(tree: Tree) -> None:
    top = tree.get("library")
    assert find_in_page(top, tree, "second FLOOR").startswith(
        "Reading rooms:\nReading rooms\nThey are on the second"
    )
    assert find_in_page(top, tree, "what do children pay for their card?").startswith("Membership:")
    assert find_in_page(top, tree, "submarine") == ""


def test_keys_in_links_are_masked(tmp_path: Path) -> None:
    page = '<h1>H</h1><a href="/AKIAQQ975ZZZZYYYXXXX">key AKIAQQ977ZZZZYYYXXXX</a> <a href="https://u:hunter978@h.org/">z</a>'
    with WebServer({"/": page}) as running:
        source = SourceRef(f"{running.url}/", {"allow": [running.host]}, "keys")
        with build_tree(source, out=tmp_path / "tree") as tree:
            top = tree.get("keys")
            assert links_of_page(top).count("\n") == 1
            assert "AKIA" not in repr(top) + links_of_page(top) and "hunter978" not in repr(top)


def test_links_of_a_page(server: WebServer, tree: Tree) -> None:
    top = tree.get("library")
    listed = links_of_page(top).split("\n")
    assert listed == [
        f"Opening hours: {server.url}/hours",
        f"Contact us: {server.url}/contact",
        "Machine: http://169.254.169.254/meta",
    ]
    assert links_of_page(top, max_links=1) == listed[0]
    assert follow_link.described(top, ["How can I contact you?"]).endswith(
        "Its links: Contact us, Opening hours, Machine."
    )


@pytest.mark.parametrize("query", ["Machine", "http://169.254.169.254/meta"])
def test_a_link_to_where_nothing_may_be_fetched_is_refused(tree: Tree, query: str) -> None:
    with pytest.raises(Exception, match="link-local"):
        follow_link(tree.get("library"), tree, query)


@pytest.mark.parametrize(
    "query", ["http://127.0.0.1:1/secret", "file:///etc/passwd", "submarine", "File", ""]
)
def test_only_links_of_the_page_are_followed(tree: Tree, query: str) -> None:
    """An address that a page or a model made up leads nowhere, so nothing can be sent away in it."""
    with pytest.raises(ToolFailed, match="no link of"):
        follow_link(tree.get("library"), tree, query)


def test_a_page_is_fetched_again_when_it_has_changed(server: WebServer, tree: Tree) -> None:
    server.asked.clear()
    assert not tree.stale()
    tree.refresh()
    assert [request.method for request in server.asked] == ["HEAD", "HEAD"], (
        "nothing but its version was asked for"
    )
    changed = HOME.replace("12 euros", "15 euros")
    server.routes["/"] = Reply(changed, headers={"ETag": '"2"'})
    assert tree.stale()
    tree.refresh()
    assert "15 euros" in tree.content("library/membership")


def test_what_is_unchanged_is_not_written_again(server: WebServer, tree: Tree) -> None:
    server.routes["/"] = Reply(HOME)  # no version is said, so it is fetched
    tree.refresh()
    before = tree.sequence
    tree.refresh()
    assert tree.sequence == before


def test_a_page_that_is_gone_keeps_what_was_seen(server: WebServer, tree: Tree) -> None:
    server.routes["/"] = Reply("", 410)
    tree.refresh()
    top = tree.get("library")
    assert "answers 410" in top.attributes["note"]
    assert "12 euros" in tree.content("library/membership")


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (Reply("secret", 200), "robots.txt there does not allow it"),
        (Reply(b"\x89PNG\r\n\x00", kind="image/png"), "is image/png: there is no text in it"),
        (Reply("", 302, {"Location": "http://169.254.169.254/"}), "link-local"),
        (Reply("", 500), "answers 500"),
    ],
)
def test_a_page_that_cannot_be_read_is_a_node_that_says_so(
    server: WebServer, tmp_path: Path, reply: Reply, note: str
) -> None:
    server.routes["/bad"] = reply
    if note.startswith("robots"):
        server.routes["/robots.txt"] = Reply("User-agent: *\nDisallow: /bad")
    with build_tree(
        SourceRef(f"{server.url}/bad", {"allow_private": True}, "bad"), out=tmp_path / "t"
    ) as tree:
        assert note in tree.get("bad").attributes["note"]


def test_without_leave_a_private_page_is_refused(server: WebServer, tmp_path: Path) -> None:
    with build_tree(f"{server.url}/", out=tmp_path / "t") as tree:
        (top,) = tree.children()
        assert "a loopback address" in top.attributes["note"]
    assert server.asked == []


def test_the_charset_of_the_header_goes_before_that_of_the_page(server: WebServer) -> None:
    text = '<meta charset="utf-8"><title>Größe</title><p>Äpfel'
    server.routes["/latin"] = Reply(text.encode("latin-1"), kind="text/html; charset=iso-8859-1")
    page = read_page(f"{server.url}/latin", {"allow": [server.host]})
    assert (page.title, page.text().strip()) == ("Größe", "Äpfel")


def test_other_texts_are_read_by_their_types(server: WebServer) -> None:
    server.routes |= {
        "/guide.md": Reply("# Guide\n\nHow to.\n\n## Start\n\nPress it.", kind="text/markdown"),
        "/data": Reply('{"a": 1}', kind="application/json"),
        "/script.py": Reply(
            "def f():\n    'Add.'\n    return 1\n\n\nclass A:\n    pass\n", kind="text/plain"
        ),
    }
    options = {"allow": [server.host]}
    assert [p.title for p in read_page(f"{server.url}/guide.md", options).outline.parts] != []
    assert read_page(f"{server.url}/data", options).text() == '{"a": 1}'
    assert [p.id for p in read_page(f"{server.url}/script.py", options).outline.parts] == ["::f", "::A"]


def test_links_are_found_wherever_they_lead() -> None:
    html = """<base href="/deep/"><a href="x">A</a><a href="x#part">again</a><a href="//other.example/">B</a>
    <a href="mailto:a@b.example">mail</a><a>none</a><a href="http://[broken">C</a><a href="?q=1"><img alt="P"></a>
    <area href="map" aria-label="Map">"""
    links = links_of(html, "http://a.example/page")
    assert [(link.text, link.url) for link in links] == [
        ("A", "http://a.example/deep/x"),
        ("B", "http://other.example/"),
        ("", "http://a.example/deep/?q=1"),
        ("Map", "http://a.example/deep/map"),
    ]


def test_the_link_that_is_meant() -> None:
    links = [
        Link("http://a/1", "Prices"),
        Link("http://a/opening-times", ""),
        Link("http://a/3", "All our prices of 2024"),
    ]
    assert best_link(links, "prices") == links[0]
    assert best_link(links, "All our prices of 2024") == links[2]
    assert best_link(links, "When is the opening?") == links[1]
    assert best_link(links, "submarine") is None and best_link([], "x") is None
    assert link_listing(links, "2024") == "All our prices of 2024, Prices"


def test_ids_of_pages() -> None:
    assert page_id("HTTP://A.example/B?c=D#e") == "page:http://a.example/B?c=D"
    assert load_source_type("web").recognises("https://a.example")
