"""The words of a report in the paths of files."""

from __future__ import annotations

from metatree_routers import TextEvidence, rank_files

from metatree import Node, Tree

REPORT = """Quaternion conversion is wrong

When I turn a rotation into a matrix, the sign of one entry differs from what the literature says, and from what other
programs give for the same input. I have looked at the formula and believe that the sine has the wrong sign there, since
the transposed result would be right. The same happens for all angles that I tried, and in all versions I have here.
"""


def _tree(*paths: str, text: str = "def convert(sign, entry):\n    return sign\n") -> Tree:
    tree = Tree.create()
    for path in paths:
        node = Node(id=path, title=path.rpartition("/")[2], kind="file", attributes={"path": path})
        tree.add(node, tree.root)
        tree.add(Node(id=f"{path}::convert", title="convert", kind="definition", content=text), path)
    return tree


def test_of_equal_files_the_one_whose_path_speaks_of_it_comes_first() -> None:
    tree = _tree("lib/angles.py", "lib/quaternion.py", "lib/zeros.py")
    files = rank_files(TextEvidence(tree), tree, REPORT, 3)
    assert files[0].path == "lib/quaternion.py"
    assert "quaternion" in files[0].reason.lower()


def test_a_word_in_few_paths_counts_more_than_one_in_many() -> None:
    tree = _tree("matrix/a.py", "matrix/b.py", "matrix/c.py", "quaternion/d.py", "other/e.py")
    files = rank_files(TextEvidence(tree), tree, REPORT, 5)
    assert files[0].path == "quaternion/d.py"
    assert {file.path for file in files[1:4]} == {"matrix/a.py", "matrix/b.py", "matrix/c.py"}


def test_a_short_path_says_more_than_a_long_one() -> None:
    tree = _tree("quaternion/tools/extra/old/misc.py", "quaternion/misc.py", "other/misc.py")
    files = rank_files(TextEvidence(tree), tree, REPORT, 3)
    assert files[0].path == "quaternion/misc.py"
