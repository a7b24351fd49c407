"""A memory type that does not keep to its word: one note at one file, and the rest is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _outline_check as outline_check

from metatree import plugins
from metatree.node import Source
from metatree.trees.source_types import Outline, OutlinePart, SourceFile, register_type

pytestmark = pytest.mark.integration


class Wrong:
    """Gives what a test says for `*.wrong`."""

    name = source_type = "wrong"
    version = "1"

    def __init__(self, give: Callable[[], Any]) -> None:
        self.give = give

    def recognises(self, path: str, head: bytes) -> bool:
        return path.endswith(".wrong")

    def outline(self, file: SourceFile) -> Outline:
        found: Outline = self.give()
        return found

    def content(self, file: SourceFile, source: Source) -> str:
        return "content"


def part(part_id: Any = "#a", **given: Any) -> OutlinePart:
    return OutlinePart(**{"id": part_id, "title": "A", "start_line": 1, "end_line": 1, **given})


def outline(*parts: Any, **given: Any) -> Outline:
    return Outline(**{"description": "said", "parts": parts, **given})


def raising() -> Iterator[OutlinePart]:
    yield part()
    raise ValueError("half way")


def endless() -> Iterator[OutlinePart]:
    number = 0
    while True:
        number += 1
        yield part(f"#{number}")


def deep() -> OutlinePart:
    found = part("#0")
    for number in range(1, 5_000):
        found = part(f"#{number}", parts=(found,))
    return found


def throw(exc: BaseException) -> Any:
    raise exc


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    yield
    plugins.unregister(plugins.MEMORY_TYPES, "wrong")


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda: None, "NoneType, not Outline"),
        (lambda: "text", "str, not Outline"),
        (lambda: [part()], "list, not Outline"),
        (lambda: throw(ValueError("no")), "ValueError: no"),
        (lambda: throw(SystemExit("goodbye")), "SystemExit: goodbye"),
        (lambda: throw(ValueError("x " * 120 + "postgres://ann:" + "s3cret-" * 9 + "@db.example.org/a")), "ann:*****"),
        (lambda: throw(RecursionError("deep")), "RecursionError"),
        (lambda: throw(MemoryError()), "MemoryError"),
        (lambda: outline(parts=raising()), "ValueError: half way"),
        (lambda: outline(parts=endless()), "more than 1,000 parts"),
        (lambda: outline(parts=None), "parts are NoneType"),
        (lambda: outline(parts="parts"), "parts are str"),
        (lambda: outline("part", None), "part is str"),
        (lambda: outline(part("#a"), part("#a")), "two parts have the id '#a'"),
        (lambda: outline(part("#a", parts=(part("#a"),))), "two parts have the id '#a'"),
        (lambda: outline(part("")), "must begin with"),
        (lambda: outline(part("b")), "must begin with"),
        (lambda: outline(part(7)), "id of a part is int"),
        (lambda: outline(part("#\ud83d")), "must begin with"),
        (lambda: outline(part(title=None)), "title is NoneType"),
        (lambda: outline(part(start_line="1")), "has the line '1'"),
        (lambda: outline(part(end_line=-1)), "has the line -1"),
        (lambda: outline(part(start_line=1.5)), "has the line 1.5"),
        (lambda: outline(part(end_line=10**30)), "has the line"),
        (lambda: outline(part(ranges=(1, 2))), "TypeError"),
        (lambda: outline(part(attributes={"a": object()})), "no JSON values"),
        (lambda: outline(deep()), "more than 100 deep"),
        (lambda: outline(description=b"said"), "description is bytes"),
        (lambda: outline(attributes=None), "attributes is NoneType"),
        (lambda: outline(attributes={"a": {1, 2}}), "no JSON values"),
        (lambda: outline(attributes={"a": "x" * 11_000_000}), "take 11 MB"),
        (lambda: outline(imports="os"), "imports are str"),
        (lambda: outline(references=(object(),)), "no JSON values"),
    ],
)  # fmt: skip
def test_a_wrong_outline_is_a_note_at_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, give: Callable[[], Any], said: str
) -> None:
    monkeypatch.setattr(outline_check, "MOST_PARTS", 1_000)
    source = tmp_path / "app"
    source.mkdir()
    for name in ("a.md", "b.wrong", "c.py"):
        (source / name).write_text("# Tea\n\n'Green tea.'\n")
    register_type(Wrong(give))
    with build_tree(source, out=tmp_path / "tree") as tree:
        assert [node.id for _, node in tree.walk() if node.kind == "file"] == ["a.md", "b.wrong", "c.py"]
        (problem,) = tree.omissions()
        assert problem[0] == "b.wrong" and "the type 'wrong' failed" in problem[1] and said in problem[1]
        assert len(problem[1]) <= 300 and tree.get("b.wrong").attributes["note"] == problem[1]
        assert tree.content("b.wrong") == "# Tea\n\n'Green tea.'\n"  # as plain text
        assert not tree.stale()


def test_what_a_tree_cannot_keep_of_a_right_outline_is_mended(tmp_path: Path) -> None:
    (tmp_path / "b.wrong").write_text("text\n")
    given = outline(
        part("#a", title="half \ud83d", description="x" * 10_000_000, parts=iter([part("#b")])),
        part("#c", start_line=50, end_line=20),
        description="half \ud83d",
    )
    register_type(Wrong(lambda: given))
    with build_tree(tmp_path) as tree:
        assert [node.id for _, node in tree.walk()][1:] == ["b.wrong", "b.wrong#a", "b.wrong#b", "b.wrong#c"]
        assert tree.get("b.wrong").description == "half ?"
        assert len(tree.get("b.wrong#a").description) <= outline_check.MOST_CHARS
        assert tree.omissions() == []


@pytest.mark.parametrize("name", ["version", "name", "binary", "max_file_bytes", "source_type"])
def test_a_type_with_wrong_attributes_is_left_out(tmp_path: Path, name: str) -> None:
    kind = Wrong(lambda: outline())
    setattr(kind, name, ["wrong"])
    plugins.register(plugins.MEMORY_TYPES, "wrong", kind)
    for file in ("a.md", "b.wrong"):
        (tmp_path / file).write_text("# Tea\n\nGreen tea.\n")
    with build_tree(tmp_path) as tree:
        assert tree.content("b.wrong") == "# Tea\n\nGreen tea.\n"
        assert tree.content("a.md")


def test_parts_of_two_files_that_have_one_id_are_both_there(tmp_path: Path) -> None:
    """`x.wrong` with a part `#y.wrong/c`, and `x.wrong#y.wrong` with a part `/c`: the second ended the build."""
    for name in ("x.wrong", "x.wrong#y.wrong"):
        (tmp_path / name).write_text("text\n")
    given = outline(part("#y.wrong/c"), part("/c"))
    register_type(Wrong(lambda: given))
    for _ in range(2):
        with build_tree(tmp_path) as tree:
            ids = [node.id for _, node in tree.walk()]
        assert {"x.wrong#y.wrong/c", "x.wrong#y.wrong/c~"} <= set(ids) and len(ids) == len(set(ids)) == 7


def test_a_letter_that_its_type_cannot_read_is_not_read_as_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines break a key in two."""
    monkeypatch.setattr(outline_check, "MOST_PARTS", 1)
    head = "From: ann@example.org\nSubject: Tea\nDate: Mon, 02 Mar 2026 10:00:00 +0000\n"
    head += "Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n"
    letter = (
        f"From ann Mon Mar  2 10:00:00 2026\n{head}It is ghp_4KvQ2mLx7bN4cP8t=\nR4wZ5yU6oE0aHs4dFgJk now.\n\n"
    )
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "all.mbox").write_text(letter * 3)
    with build_tree(tmp_path / "app", out=tmp_path / "tree") as tree:
        assert [path for path, why in tree.omissions() if "failed" in why] == ["all.mbox"]
        assert "R4wZ5y" not in str([(node, node.content) for _, node in tree.walk()])
        assert "all.mbox" not in tree
