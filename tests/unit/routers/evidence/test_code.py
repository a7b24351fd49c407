"""In a tree of code: the definition before its file, each file once before any comes again, copies once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.index.node_table import NodeTable

from metatree import search
from metatree.node import Node
from metatree.trees.tree import Tree

SESSIONS = {
    "Session": "Keeps cookies and settings between requests.",
    "Session.resolve_redirects": "while url: response = self.send(url); follow the location header",
    "Session.send": "history = list(self.resolve_redirects(response)); self.resolve_redirects; return history",
    "session": "return Session()",
}
MODELS = {
    "Response.is_redirect": "Whether resolve_redirects would follow this response: status and location header",
    "Response.json": "return decode(self.body)",
}
MAPS = {"FlatHashMap": "", "FlatHashMap.insert": "place the slot", "FlatHashMap.find": "probe the slots"}
HASHES = {"mix": "a hash that is a map of bits: flat hash, map", "spread": "flat = map(hash, flat)"}


def add_file(tree: Tree, path: str, definitions: dict[str, str], description: str = "") -> None:
    tree.add(Node(path, path.rpartition("/")[2], description, kind="file", attributes={"path": path}))
    for name, content in definitions.items():
        said = {"name": name.rpartition(".")[2], "path": path}
        node = Node(f"{path}::{name}", name, kind="definition", content=content, attributes=said)
        tree.add(node, parent=path)


@pytest.fixture
def code() -> Tree:
    tree = Tree.create(":memory:")
    add_file(tree, "src/sessions.py", SESSIONS, "Classes: Session. Functions: session.")
    add_file(tree, "src/models.py", MODELS, "Classes: Response.")
    add_file(tree, "src/flat_maps.py", MAPS)
    add_file(tree, "src/hashes.py", HASHES)
    return tree


def found(tree: Tree, question: str, k: int = 3, accept: str | None = None) -> list[str]:
    return [node.id for node in search(question, tree=tree, returns="nodes", k=k, accept=accept).nodes]


def test_the_definition_comes_before_its_file_and_before_who_calls_it(code: Tree) -> None:
    first, second, *_ = found(code, "resolve_redirects")
    assert (first, second) == (
        "src/sessions.py::Session.resolve_redirects",
        "src/models.py::Response.is_redirect",
    )


@pytest.mark.parametrize(
    ("asked", "member"),
    [
        ("Session.send", "src/sessions.py::Session.send"),
        ("old.sessions.Session.send()", "src/sessions.py::Session.send"),
        ("`FlatHashMap::find`", "src/flat_maps.py::FlatHashMap.find"),
        ("Adapter.__init__", "src/adapters.py::Adapter.__init__"),
    ],
)
def test_the_qualified_name_of_a_member_finds_that_member_and_its_class_behind_it(
    code: Tree, asked: str, member: str
) -> None:
    said = "Adapter Adapter __init__ send"
    add_file(
        code, "src/adapters.py", {"Adapter": said, "Adapter.__init__": "self.pool = {}", "Adapter.send": said}
    )
    assert found(code, asked)[0] == member


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("resolve_redirects", "src/sessions.py::Session.resolve_redirects"),
        ("Session.send", "src/sessions.py::Session.send"),
        ("location_header", "docs/"),
    ],
)
def test_a_name_finds_its_definition_first_among_many_documents_too(
    code: Tree, asked: str, first: str
) -> None:
    for number in range(30):
        name = f"{number}.md"
        text = "How resolve_redirects, Session.send and location_header are used, and are used again. " * (
            4 - number % 4
        )
        path = f"docs/{name}"
        code.add(Node(path, name, kind="file", content=text, attributes={"path": path}))
    assert found(code, asked)[0].startswith(first)


@pytest.mark.parametrize(
    ("asked", "read_as"),
    [
        ("resolve_redirect", "resolve_redirects"),
        ("`reslove_redirects()`", "resolve_redirects"),
        ("Sesion.send", "Session.send"),
        ("flatHashMop", "FlatHashMap"),
        ("Session.send", ""),
        ("is_redirect", ""),
        ("MAX_RELAY", ""),
        ("MAX_REPLY", ""),
    ],
)
def test_a_misspelt_name_is_read_as_the_nearest_that_there_is(code: Tree, asked: str, read_as: str) -> None:
    add_file(code, "src/relay.py", {"max_replay": "return MAX_RELAY", "max_reply": "return 3"})
    result = search(asked, tree=code, returns="nodes", k=1)
    assert [note.read_as for note in result.notes] == [read_as] * bool(read_as)
    assert result.sentences == [f"Read as: {read_as}"] * bool(read_as)


@pytest.mark.parametrize("name", ["Session.nothing_near", "`no_such_thing()`", "frobnicateAll"])
def test_a_name_that_nothing_has_and_none_is_near_to_is_said_to_be_unknown(code: Tree, name: str) -> None:
    result = search(name, tree=code, returns="nodes", k=1)
    plain = name.strip("`()")
    assert [(note.read_as, note.unknown) for note in result.notes] == [("", plain)]
    assert result.sentences == [f"Nothing is called {plain}; what is found only shares words with it"]


@pytest.mark.parametrize(
    "name", ["src/sessions.py", "sessions.py", "Session.send", "redirects", "no such thing"]
)
def test_a_name_that_is_there_and_what_is_no_name_is_not_called_unknown(code: Tree, name: str) -> None:
    assert not any(note.unknown for note in search(name, tree=code, returns="nodes", k=1).notes)


def test_a_file_comes_first_where_the_question_is_about_it(code: Tree) -> None:
    assert found(code, "sessions", 1) == found(code, "src/sessions.py", 1) == ["src/sessions.py"]


def test_a_file_comes_first_where_its_parts_share_the_evidence(code: Tree) -> None:
    assert found(code, "cookies, history and location", 1) == ["src/sessions.py"]


def test_kinds_and_k_are_what_is_listed(code: Tree) -> None:
    assert found(code, "resolve_redirects", 2, accept="file") == ["src/sessions.py", "src/models.py"]
    definitions = found(code, "resolve_redirects", 3, accept="definition")
    assert definitions[0] == "src/sessions.py::Session.resolve_redirects"
    assert len(definitions) == 3 and all("::" in id_ for id_ in definitions)
    assert len(found(code, "resolve_redirects hash", 12)) == 12


def test_what_else_a_file_has_comes_behind_the_best_of_others(code: Tree) -> None:
    listed = found(code, "follow the redirects: resolve_redirects", 4)
    assert [id_.partition("::")[0] for id_ in listed[:2]] == ["src/sessions.py", "src/models.py"]


def test_neighbouring_words_are_a_name(code: Tree) -> None:
    assert found(code, "the flat hash map", 1) == ["src/flat_maps.py::FlatHashMap"]


def test_copies_have_one_place(code: Tree) -> None:
    add_file(code, "dist/sessions.py", SESSIONS, "Classes: Session. Functions: session.")
    assert found(code, "resolve_redirects", 2) == [
        "src/sessions.py::Session.resolve_redirects",
        "src/models.py::Response.is_redirect",
    ]
    add_file(code, "other/sessions.py", {"Session.resolve_redirects": "refuse it in every case"})
    assert "other/sessions.py::Session.resolve_redirects" in found(code, "resolve_redirects", 3)


def test_tests_documents_and_old_versions_come_behind() -> None:
    tree = Tree.create(":memory:")
    for path in ("a/v1/parse.py", "a/v2/parse.py", "tests/parse.py", "compat/parse.py"):
        add_file(tree, path, {f"parse_{path[0]}": f"parse the header of {path}"})
    ranked = found(tree, "parse the header", 4)
    assert ranked[0].startswith("a/v2/")
    assert found(tree, "the tests that parse the header", 1)[0].startswith("tests/")


def test_what_many_files_import_comes_first() -> None:
    tree = Tree.create(":memory:")
    for name in ("one", "two", "three"):
        add_file(tree, f"src/{name}.py", {f"{name}_read": "read the header"})
    assert found(tree, "read the header", 1) != ["src/three.py::three_read"]
    tree.link("src/one.py", "src/three.py", "imports")
    assert found(tree, "read the header", 1) == ["src/three.py::three_read"]


def test_the_reason_is_what_is_defined_first(code: Tree) -> None:
    evidence = TextEvidence(code)
    definition = "src/sessions.py::Session.resolve_redirects"
    assert evidence.why(["resolve_redirects"], definition).startswith("defines `resolve_redirects`; says ")
    assert evidence.why(["sessions"], "src/sessions.py").startswith("is called `sessions`")
    code.link("src/models.py", "src/sessions.py", "imports")
    said = TextEvidence(code).why(["resolve_redirects"], definition)
    assert said.endswith("; its file is imported by 1 other")


def test_a_tree_of_documents_is_none_of_code(note_tree: Tree) -> None:
    question = "How long is a token valid?"
    before = [(s.node_id, s.score) for s in TextEvidence(note_tree).rank([question])]
    assert before == [(s.node_id, s.score) for s in TextEvidence(note_tree).score([question])]


def test_a_note_that_has_more_of_the_question_comes_before_files(code: Tree) -> None:
    note = Node("n", "Redirects", kind="memory", content="Redirects: at most ten in production.")
    code.add(note, parent=code.root)
    assert found(code, "How many redirects to follow in production?", 1) == ["n"]


def test_a_search_asks_once_for_all_reasons(code: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    reasons = TextEvidence.reasons

    def counted(
        self: TextEvidence, questions: Sequence[str], nodes: Sequence[str], **where: Any
    ) -> dict[str, str]:
        asked.append(list(nodes))
        return reasons(self, questions, nodes, **where)

    monkeypatch.setattr(TextEvidence, "reasons", counted)
    nodes = search("resolve_redirects", tree=code, returns="nodes", k=3).nodes
    assert asked == [[node.id for node in nodes]]
    evidence = TextEvidence(code)
    said = reasons(evidence, ["resolve_redirects"], asked[0])
    assert said == {id_: evidence.why(["resolve_redirects"], id_) for id_ in asked[0]}
    assert all(node.reason.startswith(said[node.id]) for node in nodes) and len(set(said.values())) == 3


def test_what_was_read_of_an_index_serves_the_next_search_until_the_tree_changes(
    code: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    init = NodeTable.__init__

    def counted(self: NodeTable, *arguments: Any) -> None:
        made.append(1)
        init(self, *arguments)

    monkeypatch.setattr(NodeTable, "__init__", counted)
    for question in ("resolve_redirects", "flat hash map", "is_redirect"):
        assert found(code, question)
    assert len(made) == 1
    add_file(code, "src/caches.py", {"LruCache.evict": "drops the oldest entry"})
    assert found(code, "lru cache", 1) == ["src/caches.py::LruCache.evict"] and len(made) == 2
    code.delete("src/caches.py::LruCache.evict")
    assert "src/caches.py::LruCache.evict" not in found(code, "evict the oldest entry")
