"""The tool trees of code and documents: what each tool gives, what it refuses, and a search that needs it."""

# ruff: noqa: E501, files in one line each

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli.printing.answers import answer_lines
from metatree_memory_tools import build_tree
from metatree_memory_tools.code._tools import add_note, grep, outline, read_lines, who_calls, who_imports
from metatree_memory_tools.text._tools import find_in_text, read_page
from metatree_memory_tools.text.pattern import matching_lines
from metatree_routers.embedded.reader import EmbeddedReader

from metatree import Answer, Reading, RouteRequest, Tree, search
from metatree.errors import UserError
from metatree.protocols import ReadRequest, ToolRequest
from metatree.testing.parts import FunctionRouter, ScriptedToolCaller

pytestmark = pytest.mark.integration

FILES = {
    "shop/prices.py": 'def price_of(leaf):\n    """Look up a price."""\n    return {"green": 3}[leaf]\n',
    "shop/till.py": "from shop.prices import price_of\n\n\nclass Till:\n    def total(self, leaves):\n        return sum(price_of(leaf) for leaf in leaves)\n",
    "shop/menu.py": "from shop import prices\n\n\ndef show(leaf):\n    print(prices.price_of(leaf))\n",
    "shop/__init__.py": "",
    "web/cart.ts": "import { fetchPrice } from './api';\n\nexport function addToCart(leaf: string) {\n  return fetchPrice(leaf);\n}\n",
    "web/api.ts": "/** Asks the server. */\nexport function fetchPrice(leaf: string) {\n  return leaf;\n}\n",
    "cmd/main.go": 'package main\n\nimport "example.org/tea/brew"\n\nfunc main() {\n\tbrew.Brew()\n}\n',
    "brew/brew.go": "package brew\n\n// Brew brews.\nfunc Brew() {\n}\n",
    "go.mod": "module example.org/tea\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    for name, text in FILES.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(text)
    (tmp_path / "source" / "shop" / "data.bin").write_bytes(b"\0\nprice_of(")  # left out of the tree
    with build_tree(tmp_path / "source") as tree:
        yield tree


class Finder:
    """A reader that answers what a pattern finds in what it reads."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern)
        self.read_texts: list[str] = []

    async def read(self, request: ReadRequest) -> Reading:
        self.read_texts.append(request.content)
        found = self.pattern.search(request.content)
        answers = tuple(Answer(q, found[0], quote=found[0]) for q in request.questions) if found else ()
        return Reading(answers, useful=bool(answers))


def towards(*wanted: str) -> FunctionRouter:
    """Return a router that chooses the first of some ids that is offered."""

    def choose(request: RouteRequest) -> str | None:
        offered = {option.id for option in request.options}
        return next((id_ for id_ in wanted if id_ in offered), None)

    return FunctionRouter(choose)


def test_grep_looks_through_a_folder_or_a_file(tree: Tree) -> None:
    said = grep(tree.get("shop"), tree, r"price_of\(")
    assert said.splitlines()[0] == "shop/menu.py:5: print(prices.price_of(leaf))"
    assert len(said.splitlines()) == 3
    assert grep(tree.get("shop/till.py::Till.total"), tree, "SUM", ignore_case=True).startswith(
        "shop/till.py:6:"
    )
    assert "(more than 1 lines match)" in grep(tree.get("."), tree, "price", max_lines=1)
    with pytest.raises(UserError, match=r"no line of shop matches 'coffee'"):
        grep(tree.get("shop"), tree, "coffee")


def test_outline_lists_what_is_defined(tree: Tree) -> None:
    assert outline(tree.get("shop/till.py"), tree).splitlines()[1].startswith("  Till:4-6")


def test_who_imports_and_who_calls(tree: Tree) -> None:
    assert who_imports(tree.get("shop/prices.py::price_of"), tree).splitlines() == [
        "2 file(s) import shop/prices.py:", "shop/menu.py", "shop/till.py",
    ]  # fmt: skip
    assert "web/cart.ts" in who_imports(tree.get("web/api.ts"), tree)
    assert "cmd/main.go" in who_imports(tree.get("brew/brew.go"), tree)
    with pytest.raises(UserError, match=r"no file of this tree imports shop/menu\.py"):
        who_imports(tree.get("shop/menu.py"), tree)
    assert who_calls(tree.get("shop/prices.py::price_of"), tree).splitlines() == [
        "shop/menu.py:5 in shop/menu.py::show: print(prices.price_of(leaf))",
        "shop/till.py:6 in shop/till.py::Till.total: return sum(price_of(leaf) for leaf in leaves)",
    ]
    assert "web/cart.ts:4" in who_calls(tree.get("."), tree, "fetchPrice")
    with pytest.raises(UserError, match="name of what is called"):
        who_calls(tree.get("."), tree)


def test_read_lines_numbers_them(tree: Tree) -> None:
    assert read_lines(tree.get("brew/brew.go::Brew"), tree, 1, 3) == "1: package brew\n2: \n3: // Brew brews."
    with pytest.raises(UserError, match="has 5 lines"):
        read_lines(tree.get("brew/brew.go"), tree, 9, 10)


def test_a_pattern_that_never_ends_is_stopped(tree: Tree) -> None:
    with pytest.raises(UserError, match="takes more than 0 seconds"):
        matching_lines("(a+)+$", [("x", ["a" * 60 + "b"])], most=1, limit_s=0.3)
    with pytest.raises(UserError, match="no regular expression"):
        grep(tree.get("."), tree, "(")
    assert matching_lines("b+", [("x", ["a", "abb"])], most=5) == [("x", 2, "abb")]


def test_tools_stay_inside_of_the_source_and_of_the_tree(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("SECRET = 'outside'\n")
    source = tmp_path / "source"
    (source / ".env").write_text("SECRET=inside\n")
    with pytest.raises(UserError, match=r"no line of \. matches 'SECRET'"):
        grep(tree.get("."), tree, "SECRET")
    (source / "shop" / "menu.py").unlink()
    (source / "shop" / "menu.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(UserError, match=r"no line of \. matches 'SECRET'"):
        grep(tree.get("."), tree, "SECRET")
    with pytest.raises(UserError, match="outside"):
        read_lines(tree.get("shop/menu.py"), tree, 1, 2)


def test_a_note_is_a_node_with_its_text(tree: Tree) -> None:
    note = add_note(tree.get("shop/prices.py"), "Ask Ann\nabout green.")
    assert (note.kind, note.title, note.content) == ("note", "Ask Ann about green.", "Ask Ann\nabout green.")
    assert note.id != add_note(tree.get("shop/prices.py"), "Else.").id


def test_the_tools_of_documents(tmp_path: Path, pdf: Callable[..., bytes]) -> None:
    pages = [
        [(12, "Kettles"), (12, "A kettle boils water")],
        [(12, "for tea.")],
        [],
        [(12, "Kettle, again.")],
    ]
    (tmp_path / "a.pdf").write_bytes(pdf(pages))
    with build_tree(tmp_path) as tree:
        node = tree.get("a.pdf#page-2")
        said = find_in_text(node, tree, "kettle")
        assert said.splitlines() == [
            "'kettle' is in 3 line(s) of a.pdf:",
            "page 1, line 1 in a.pdf#page-1: Kettles",
            "page 1, line 2 in a.pdf#page-1: A kettle boils water",
            "page 4, line 4 in a.pdf#page-4: Kettle, again.",
        ]
        assert find_in_text(node, tree, "water  for").splitlines()[1].startswith("page 1, line 2")
        with pytest.raises(UserError, match=r"'milk' is nowhere in a\.pdf"):
            find_in_text(node, tree, "milk")
        assert read_page(node, tree, 2, 3).splitlines() == [
            "Page 2 of 4:", "for tea.", "Page 3 of 4:", "(no text: a picture, a scan, or an empty page)",
        ]  # fmt: skip
        with pytest.raises(UserError, match="has 4 pages"):
            read_page(node, tree, 9)


def test_a_search_answers_by_the_tools_of_code_what_no_node_says(tree: Tree) -> None:
    """No node says who imports it: the link is between two of them."""
    reader = Finder(r"\d+ file\(s\) import shop/prices.py:\nshop/menu.py\nshop/till.py")
    router = towards("shop", "shop/prices.py", "shop/prices.py::price_of", "code", "who_imports")
    result = search(
        ["Which files would break when prices.py goes?"],
        tree=tree,
        router=router,
        reader=reader,
        tool_caller=ScriptedToolCaller({"who_imports": {}}),
    )
    assert result.answers[0].answer.endswith("shop/menu.py\nshop/till.py")
    assert any("who_imports" in str(entry) for entry in result.trace)
    without = search(
        ["Which files would break when prices.py goes?"],
        tree=tree,
        router=router,
        reader=reader,
        own_tools=False,
    )
    assert not without.answers


def test_a_search_leaves_a_note_with_its_provenance(tree: Tree) -> None:
    router = towards("brew", "brew/brew.go", "brew/brew.go::Brew", "code", "add_note")
    search(
        ["Remember that Brew needs water."],
        tree=tree,
        router=router,
        reader=Finder("nothing like it"),
        tool_caller=ScriptedToolCaller({"add_note": {"text": "Brew needs water."}}),
        run_id="noting",
    )
    notes = [node for _, node in tree.walk() if node.kind == "note"]
    assert tree.content("brew/brew.go::Brew#note-" + notes[0].id.rpartition("-")[2]) == "Brew needs water."
    assert notes[0].provenance["tool"] == "add_note" and notes[0].provenance["run"] == "noting"


def test_a_search_answers_by_the_tools_of_documents_what_no_node_says(
    tmp_path: Path, pdf: Callable[..., bytes]
) -> None:
    """No page says how many lines of the whole speak of something."""
    pages = [[(12, f"Chapter {n}"), (12, "Boil the kettle." if n % 2 else "Wait.")] for n in range(1, 8)]
    (tmp_path / "handbook.pdf").write_bytes(pdf(pages))
    with build_tree(tmp_path / "handbook.pdf", out=tmp_path / "tree") as tree:
        reader = Finder(r"'kettle' is in 4 line\(s\) of handbook.pdf")
        router = towards("handbook.pdf", "handbook.pdf#page-1", "document", "find_in_text")
        result = search(
            ["How often is the kettle spoken of?"],
            tree=tree,
            router=router,
            reader=reader,
            tool_caller=ScriptedToolCaller({"find_in_text": {"text": "kettle"}}),
        )
        assert result.answers[0].answer == "'kettle' is in 4 line(s) of handbook.pdf"
        assert any("find_in_text" in str(entry) for entry in result.trace)
        assert any("Boil the kettle." in text for text in reader.read_texts)


@pytest.mark.parametrize("question", ["Where is teapot_limit?", "Which line of notes.md says teapot_limit?"])
def test_that_a_tool_found_nothing_is_no_answer(tmp_path: Path, question: str) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nKettles boil water.\n\n## Cups\n\nCups are white.\n")
    (tmp_path / "kettle.py").write_text("def boil(cups):\n    return cups\n")
    calls: list[str] = []

    class Caller:
        async def fill(self, request: ToolRequest) -> dict[str, str]:
            calls.append(request.tool.id)
            names = request.tool.schema["properties"]
            return {name: "teapot_limit" for name in names if name in ("text", "pattern")}

    with build_tree(tmp_path) as tree:
        first = FunctionRouter(lambda request: request.options[0].id)
        parts: Any = {"router": first, "reader": EmbeddedReader(), "tool_caller": Caller(), "evidence": False}
        result = search(question, tree=tree, tools=(grep, find_in_text), own_tools=False, **parts)
    assert calls
    assert (result.answer, result.ended) == ("", "exhausted")
    said = [entry.reason for entry in result.trace if entry.event == "tool"]
    assert any("no line of" in reason or "is nowhere in" in reason for reason in said)


def test_a_source_in_a_document_with_pages_has_its_page(tmp_path: Path, pdf: Callable[..., bytes]) -> None:
    pages = [
        [(12, "A kettle boils water in three minutes.")],
        [(12, "Cups are kept in the blue cupboard.")],
        [(12, "Nobody drinks coffee here.")],
    ]
    (tmp_path / "handbook.pdf").write_bytes(pdf(pages))
    with build_tree(tmp_path) as tree:
        result = search("Where are cups kept?", tree=tree)
        printed = list(answer_lines(result, tree))
    (source,) = result.answers[0].sources
    assert (source.place, source.lines) == ("handbook.pdf", None)
    assert source.pages is not None and source.pages[0] <= 2 <= source.pages[1]
    assert result.cited.endswith("[1]")
    assert any("handbook.pdf, page" in line for line in printed)
