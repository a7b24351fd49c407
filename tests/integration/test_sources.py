"""Several sources in one tree, each below its mount; sources that are no folders; one that fails harms no other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree

from metatree import Node, Source, Tree, UserError, plugins, search, tool
from metatree.errors import MetatreeError, TransientError
from metatree.trees.source_types import Progress, SourceRef, load_source_type, register_type

pytestmark = pytest.mark.integration


class Shelf:
    """A source of a line for each book, kept in a dict that stands for a server."""

    name = "shelf"
    version = "1"

    def __init__(self, books: dict[str, str]) -> None:
        self.books = books
        self.down = ""
        self.reads = 0

    def recognises(self, location: str) -> bool:
        return location.startswith("shelf://")

    def fingerprint(self, source: SourceRef) -> str | None:
        if self.down == "always":
            raise TransientError("the shelf is locked")
        return repr(sorted(self.books.items()))

    def nodes(self, source: SourceRef, *, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        self.reads += 1
        yield Node(".", "shelf", "A shelf of books", kind="shelf"), None
        for number, (key, text) in enumerate(self.books.items()):
            if self.down and number == 1:
                raise MetatreeError("the lamp went out")
            ref = Source(type="shelf", path=key)
            yield (
                Node(
                    key, key.title(), f"A book of {len(text)} letters", kind="book", source=ref, digest=text
                ),
                ".",
            )
            yield Node(f"{key}/1", "One", content=text.upper(), kind="page"), key

    def content(self, source: SourceRef, ref: Source) -> str:
        if self.down:
            raise TransientError("the shelf is locked")
        return f"{source.location}|{ref.path}|{self.books[ref.path]}"


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf({"emma": "a match", "dune": "much sand", "ivanhoe": "a knight"})
    register_type(made)
    yield made
    plugins.unregister(plugins.SOURCES, "shelf")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, text in {
        "src/app/__init__.py": '"""The app."""\nfrom app.core import run\n',
        "src/app/core.py": "def run():\n    'Run it.'\n    return 1\n",
        "docs/guide.md": "# Guide\n\nHow to.\n\n## Refunds\n\nPaid within 14 days.\n",
        "other/docs/guide.md": "# Other\n\nIt differs.\n",
        "handbook.md": "# Handbook\n\nHello.\n\n## Rules\n\nBe kind.\n",
    }.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        os.utime(place, ns=(10**18, 10**18 + 7))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dump(tree: Tree) -> list[Any]:
    return [
        (depth, node, tree.content(node) if node.has_content else None, tree.links(node))
        for depth, node in tree.walk()
    ] + tree.omissions()


def test_several_folders_and_a_file_lie_below_their_mounts(folders: Path) -> None:
    with build_tree("src", "docs", "other/docs", "handbook.md") as tree:
        assert tree.path == folders / ".metatree"
        assert [node.id for node in tree.children()] == ["src", "docs", "docs-2", "handbook.md"]
        assert tree.content("docs/guide.md#refunds") == "## Refunds\n\nPaid within 14 days."
        assert tree.content("docs-2/guide.md") == "# Other\n\nIt differs.\n"
        assert tree.content("handbook.md#rules") == "## Rules\n\nBe kind."
        assert tree.content("src/app/core.py::run").startswith("def run()")
        assert tree.links("src/app/__init__.py") == [("imports", "src/app/core.py")]
        source = tree.source_of("docs/guide.md#refunds")
        assert source is not None and (source.location, source.mount) == (str(folders / "docs"), "docs")
        assert tree.source_of(".") is None and tree.file_of(".") is None
        assert tree.file_of("handbook.md#rules") == folders / "handbook.md"
        assert tree.file_of("docs-2/guide.md") == folders / "other/docs/guide.md"
        assert tree.file_of("src/app") == folders / "src/app"
        assert tree.resolve(str(folders / "other/docs/guide.md")) == "docs-2/guide.md"
        assert tree.resolve("handbook.md") == "handbook.md"
        assert tree.source_root is None and not tree.stale()
        note = tree.add(Node("n", "note", content="mind"), "handbook.md#rules")
        assert tree.file_of(note) == folders / "handbook.md"


def test_a_project_moves_with_its_tree(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_tree("src", "handbook.md").close()
    moved = folders.rename(folders.with_name("moved"))
    monkeypatch.chdir(moved)
    with Tree.open(".") as tree:
        assert tree.content("handbook.md#rules") == "## Rules\n\nBe kind."
        assert [source.location for source in tree.sources()] == [
            str(moved / "src"),
            str(moved / "handbook.md"),
        ]
        assert not tree.stale()


def test_each_source_is_brought_up_to_date_by_itself(folders: Path) -> None:
    with build_tree("src", "docs", "handbook.md") as tree:
        since = tree.sequence
        (folders / "docs/more.md").write_text("# More\n\nWords.\n")
        (folders / "handbook.md").write_text("# Handbook\n\nHello.\n\n## Rules\n\nBe bold.\n")
        assert tree.stale()
        tree.refresh()
        changed = {node_id for _, node_id, _ in tree.changes(since)}
        assert changed == {"docs", "docs/more.md", "handbook.md#rules"}
        assert tree.content("handbook.md#rules") == "## Rules\n\nBe bold."
        (folders / "docs/guide.md").unlink()
        tree.refresh()
        assert "docs/guide.md" not in tree
        with build_tree("src", "docs", "handbook.md", out=folders / "fresh") as fresh:
            assert dump(tree) == dump(fresh)
        since = tree.sequence
        tree.refresh()
        assert tree.sequence == since


def test_a_source_that_is_gone_keeps_its_nodes_and_the_others_go_on(folders: Path) -> None:
    with build_tree("src", "docs", "handbook.md") as tree:
        (folders / "docs").rename(folders / "away")
        (folders / "handbook.md").rename(folders / "away.md")
        (folders / "src/app/new.py").write_text("def g():\n    'Do g.'\n")
        tree.refresh()
        assert "src/app/new.py::g" in tree and "docs/guide.md#refunds" in tree
        assert "No such file" in tree.get("docs").attributes["note"]
        assert "No such file" in tree.get("handbook.md").attributes["note"]
        assert {path for path, _ in tree.omissions()} == {"docs", "handbook.md"}
        assert not tree.stale()  # nothing can be done about it now
        (folders / "away").rename(folders / "docs")
        (folders / "away.md").rename(folders / "handbook.md")
        assert tree.stale()
        tree.refresh()
        assert "note" not in tree.get("docs").attributes and "note" not in tree.get("handbook.md").attributes
        with build_tree("src", "docs", "handbook.md", out=folders / "fresh") as fresh:
            assert dump(tree) == dump(fresh)


def test_a_source_taken_out_goes_with_its_nodes_and_notes_below_it_come_back_with_it(folders: Path) -> None:
    with build_tree("src", "docs") as tree:
        tree.add(Node("n", "note", content="mind"), "docs/guide.md#refunds")
    with build_tree("src", "handbook.md") as tree:
        assert [node.id for node in tree.children()] == ["src", "handbook.md", "n"]
        assert tree.omissions() == [] and "docs/guide.md" not in tree
    with build_tree("docs", "src") as tree:
        assert [node.id for node in tree.children()] == ["docs", "src"]
        assert tree.parent("n") == "docs/guide.md#refunds"
    with build_tree("src", "docs") as tree:
        assert [node.id for node in tree.children()] == ["src", "docs"]
    with pytest.raises(UserError, match=r"this tree is of .*docs.*, not of .*handbook.md.* choose another"):
        build_tree("handbook.md")


def test_a_tree_of_one_folder_becomes_one_of_several_and_notes_follow(folders: Path) -> None:
    kept = folders / "kept"
    with build_tree("src", out=kept) as tree:
        alone = dump(tree)
        tree.add(Node("n", "note", content="mind"), "app/core.py::run")
    with build_tree("src", "docs", out=kept) as tree:
        assert tree.parent("n") == "src/app/core.py::run"
        assert "app/core.py" not in tree
    with build_tree("src", out=kept) as tree:
        assert tree.parent("n") == "app/core.py::run"
        tree.delete("n")
        assert dump(tree) == alone


def test_a_source_of_an_installed_type(folders: Path, shelf: Shelf) -> None:
    with build_tree("shelf://home/left", "docs") as tree:
        assert [node.id for node in tree.children()] == ["left", "docs"]
        assert [node.id for node in tree.children("left")] == ["left/emma", "left/dune", "left/ivanhoe"]
        assert tree.content("left/dune") == "shelf://home/left|dune|much sand"
        assert tree.content("left/dune/1") == "MUCH SAND"
        source = tree.source_of("left/dune/1")
        assert source == SourceRef("shelf://home/left", {}, "left", "shelf")
        assert tree.file_of("left/dune") is None
        found = [text for _, _, text in tree.texts(["left/dune", "docs/guide.md#refunds"])]
        assert found[0].endswith("much sand") and "14 days" in found[1]
        tree.refresh()
        assert shelf.reads == 1 and not tree.stale()
        since = tree.sequence
        del shelf.books["dune"]
        shelf.books |= {"emma": "a better match"}
        shelf.books = {"zadig": "a star", **shelf.books}
        assert tree.stale()
        tree.refresh()
        changed = {node_id: there for _, node_id, there in tree.changes(since)}
        assert changed == {
            "left/zadig": True,
            "left/zadig/1": True,
            "left/emma": True,
            "left/emma/1": True,
            "left/dune": False,
            "left/dune/1": False,
        }
        assert [node.title for node in tree.children("left")] == ["Zadig", "Emma", "Ivanhoe"]


def test_a_source_that_fails_half_way_keeps_what_was_there(folders: Path, shelf: Shelf) -> None:
    with build_tree("shelf://x", "docs") as tree:
        shelf.down, shelf.books["emma"] = "half", "another match"
        tree.refresh()
        assert {"x/emma", "x/dune", "x/ivanhoe"} <= {node.id for _, node in tree.walk("x")}
        assert tree.get("x").attributes["note"] == "cannot be read: the lamp went out"
        shelf.down = "always"
        assert not tree.stale()
        tree.refresh()
        assert tree.get("x").attributes["note"] == "cannot be read: the shelf is locked"
        shelf.down = ""
        assert tree.stale()
        tree.refresh()
        assert tree.get("x").attributes == {} and tree.content("x/emma").endswith("another match")
        assert tree.omissions() == []


def test_a_source_that_never_could_be_read_is_a_node_that_says_so(folders: Path, shelf: Shelf) -> None:
    shelf.down = "always"
    with build_tree("shelf://x") as tree:
        (top,) = tree.children()
        assert top.id == "x" and "locked" in top.description and "locked" in top.attributes["note"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([(Node("a", "a"), None)], "not its top"),
        ([(Node(".", "a"), None), (Node("a", "a"), "b")], "has no parent 'b' before it"),
        ([(Node(".", "a"), None), (Node("a", "a"), "."), (Node("a", "a"), ".")], "comes twice"),
        ([], "gave no node"),
    ],
)
def test_a_type_that_gives_no_tree_is_a_note(
    folders: Path, shelf: Shelf, wrong: list[Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "nodes", lambda source, progress: iter(wrong))
    with build_tree("shelf://x", "docs") as tree:
        assert said in tree.get("x").attributes["note"] and "docs/guide.md" in tree


def test_a_type_can_be_named_and_a_mount_be_given(folders: Path, shelf: Shelf) -> None:
    with build_tree("shelf:anything", SourceRef("docs", mount="manual")) as tree:
        assert [node.id for node in tree.children()] == ["anything", "manual"]
        assert "manual/guide.md" in tree
        source = tree.source_of("anything")
        assert source is not None and source.location == "anything"
        assert load_source_type("shelf") is shelf
    with pytest.raises(UserError, match="cannot be a mount"):
        build_tree("src", SourceRef("docs", mount="a/b"))
    with pytest.raises(UserError, match="same mount"):
        build_tree(SourceRef("src", mount="a"), SourceRef("docs", mount="a"), out="new")


class Filler:
    """Fills in what the question asks for."""

    async def fill(self, request: Any) -> dict[str, Any]:
        return {}


def test_tools_of_a_type_are_offered_on_its_nodes_alone(folders: Path, shelf: Shelf) -> None:
    asked: list[str] = []

    @tool(kind="exploratory")
    def shelf_mark(node: Node, tree: Tree) -> str:
        "Tell where a book stands."
        asked.append(node.id)
        return f"The book {node.title} stands in row seven."

    shelf.tools = [shelf_mark]  # type: ignore[attr-defined]
    with build_tree("shelf://x", "docs") as tree:
        result = search("In which row does the book Dune stand?", tree=tree)
        assert result.answer is not None and result.answer.endswith("stands in row seven.")
        assert asked and all(node_id.startswith("x") for node_id in asked)
        del asked[:]
        assert search("In which row does the book Dune stand?", tree=tree, own_tools=False).answer == ""
        assert asked == []

        @tool(kind="exploratory", name="shelf_mark")
        def other(node: Node) -> str:
            "Tell where a book stands."
            return "nowhere"

        result = search("In which row does the book Dune stand?", tree=tree, tools=[other])
        assert asked == []  # the caller's tool of this name goes before that of the type


def test_tools_of_plugins_are_offered_and_one_that_fails_harms_nothing(
    folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(kind="exploratory")
    def weather(node: Node) -> str:
        "Tell the weather."
        return "The weather in Oslo is mild."

    def broken() -> Any:
        raise ImportError("no module named 'barometer'")

    plugins.register(plugins.TOOLS, "weather", lambda: [weather])
    plugins.register(plugins.TOOLS, "broken", broken)
    try:
        with build_tree("docs") as tree:
            assert search("What is the weather in Oslo?", tree=tree).answer == "The weather in Oslo is mild."
    finally:
        plugins.unregister(plugins.TOOLS, "weather")
        plugins.unregister(plugins.TOOLS, "broken")
    assert "no module named 'barometer'" in caplog.text


@pytest.mark.parametrize(
    ("other", "called"), [("mcp:true", "'mcp:true'"), ("https://ann:s3cret@127.0.0.1:1/x", "https://")]
)
def test_a_tree_of_another_source_says_which_was_asked_for(tmp_path: Path, other: str, called: str) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "lamps.md").write_text("# Lamps\n")
    build_tree(tmp_path / "house", out=tmp_path / "tree").close()
    with pytest.raises(UserError, match=r"this tree is of .*house', not of ") as caught:
        build_tree(other, out=tmp_path / "tree")
    assert (
        called in str(caught.value)
        and "s3cret" not in str(caught.value)
        and "not of :" not in str(caught.value)
    )


def test_the_name_of_a_link_that_leads_to_nothing_is_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`metatree build *` gives the names of links of a clone, too."""
    monkeypatch.chdir(tmp_path)
    for name in ("mcp:sh setup.sh", "shelf:all", "gone.sqlite"):
        (tmp_path / name).symlink_to("nowhere")
        with pytest.raises(UserError, match="is a link that leads to nothing"):
            build_tree(name, out=tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_a_folder_that_is_called_tilde_is_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`metatree build *` gives its name, and the home of the user is not what was meant."""
    home, clone = tmp_path / "home", tmp_path / "clone"
    for folder, text in (
        (home, "The diary."),
        (clone / "~", "Of the clone."),
        (clone / "~nobody_here", "Of it, too."),
    ):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(f"# A\n\n{text}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(clone)
    for given in ("~", Path("~")):
        with pytest.raises(UserError, match="is here and in a home"):
            build_tree(given, out=tmp_path / "tree")
    for given, text in (
        ("./~", "Of the clone."),
        (Path("~").absolute(), "Of the clone."),
        ("~nobody_here", "Of it, too."),
        (Path("~nobody_here"), "Of it, too."),
    ):
        with build_tree(given, out=tmp_path / "tree") as tree:
            assert text in tree.content("a.md")
        shutil.rmtree(tmp_path / "tree")
    with pytest.raises(UserError, match="no user has that home"):
        build_tree("~nobody_else/notes", out=tmp_path / "tree")
    monkeypatch.chdir(tmp_path)
    with build_tree("~", out=tmp_path / "tree") as tree:
        assert "The diary." in tree.content("a.md")
