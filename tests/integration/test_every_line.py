"""On real code, every line lies in exactly one leaf, and a leaf's content is its lines."""

import ast
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration

LIBRARY = Path(sysconfig.get_path("stdlib"))
TAKEN = [
    "asyncio", "email", "json", "importlib", "xml", "unittest", "argparse.py", "typing.py", "dataclasses.py",
    "inspect.py", "turtle.py", "_pydecimal.py", "enum.py", "contextlib.py", "this.py", "antigravity.py",
    "pydoc_data",
]  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    source = tmp_path_factory.mktemp("library")
    for name in TAKEN:
        if (LIBRARY / name).is_dir():
            shutil.copytree(LIBRARY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(LIBRARY / name, source / name)
    with build_tree(source) as tree:
        yield tree


def sayable(text: str) -> set[int]:
    """The lines of a file that must be in a leaf: all but imports, comments, class heads and short docstrings."""
    lines = text.split("\n")
    needed = {number for number, line in enumerate(lines, start=1) if line.strip() and line.strip()[0] != "#"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
            needed -= set(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.ClassDef | ast.Module):
            first = node.body[0] if node.body else ast.Pass(lineno=1, col_offset=0)
            if isinstance(node, ast.ClassDef):
                start = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                needed -= set(range(start, first.lineno))
            constant = first.value if isinstance(first, ast.Expr) else None
            if isinstance(constant, ast.Constant) and len(" ".join(str(constant.value).split())) <= 200:
                needed -= set(range(first.lineno, (first.end_lineno or 0) + 1))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            needed -= {node.lineno}
    return needed


def test_every_line_of_the_standard_library_lies_in_one_leaf(tree: Tree) -> None:
    files = [node for _, node in tree.walk() if node.kind == "file" and node.id.endswith(".py")]
    assert len(files) > 100
    problems = {path for path, reason in tree.omissions() if "Python" in reason}
    assert problems == set()
    assert tree.source_root is not None
    for file in files:
        text = (tree.source_root / file.id).read_bytes().decode().replace("\r\n", "\n")
        lines = text.split("\n")
        seen: dict[int, str] = {}
        for _, node in tree.walk(file):
            assert len(node.description) <= 400
            children = tree.children(node)
            assert not (children and node.has_content), node.id
            if not node.has_content:
                continue
            source = node.source
            assert source is not None
            ranges = source.parts or ((source.start_line or 1, source.end_line or len(lines)),)
            for first, last in ranges:
                assert 1 <= first <= last <= len(lines)
                for number in range(first, last + 1):
                    assert number not in seen, (node.id, seen[number], number)
                    seen[number] = node.id
            if source.start_line is not None:
                wanted = "\n".join("\n".join(lines[first - 1 : last]) for first, last in ranges)
                assert tree.content(node) == wanted
                assert (source.start_line, source.end_line) == (ranges[0][0], ranges[-1][1])
        missing = sayable(text) - seen.keys() if text.strip() else set()
        assert not missing, (file.id, sorted(missing)[:5], [lines[n - 1] for n in sorted(missing)[:5]])


def test_what_can_be_read_can_be_found_by_name(tree: Tree) -> None:
    assert tree.get("email/message.py::Message.get_payload").attributes["type"] == "method"
    assert tree.content("json/decoder.py::JSONDecoder.raw_decode").lstrip().startswith("def raw_decode")
    assert ("imports", "email/_policybase.py") in tree.links("email/policy.py")
    assert "Message" in tree.get("email/message.py").description
    assert tree.get("json").description.startswith("JSON (JavaScript Object Notation)")
    assert all(len(node.description) <= 400 for _, node in tree.walk())
