"""A question that is the name of a definition, and nothing else, is answered by that definition."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import Tree, search

POST = '''
class Courier:
    """Brings parcels to doors."""

    def send_parcel(self, parcel):
        """Hand a parcel over."""
        return self.van.take(parcel)


class Van:
    def send_parcel(self, parcel):
        return parcel


def weigh_parcel(parcel):
    """Weigh it in grams."""
    return parcel.grams
'''


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "post.py").write_text(POST)
    uses = "\n".join(
        f"courier.send_parcel(weigh_parcel({n}))  # Courier, Courier.send_parcel" for n in range(9)
    )
    (tmp_path / "test_post.py").write_text(
        f"def test_weigh_parcel():\n    {uses.replace(chr(10), chr(10) + '    ')}\n"
    )
    return build_tree(tmp_path)


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        ("Courier.send_parcel", '    def send_parcel(self, parcel):\n        """Hand'),
        ("post.Courier.send_parcel()", '    def send_parcel(self, parcel):\n        """Hand'),
        ("`weigh_parcel`", "def weigh_parcel(parcel):"),
        ("weigh_parcel()", "def weigh_parcel(parcel):"),
    ],
)
def test_a_name_is_answered_by_its_definition(tree: Tree, asked: str, begins: str) -> None:
    (answer,) = search(asked, tree=tree).answers
    assert answer.answer.startswith(begins) and (answer.confidence or 0.0) >= 0.9


def test_a_name_that_two_definitions_have_is_claimed_for_none(tree: Tree) -> None:
    assert all((answer.confidence or 0.0) < 0.9 for answer in search("send_parcel", tree=tree).answers)
