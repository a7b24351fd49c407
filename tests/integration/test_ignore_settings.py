"""What the settings of a folder leave out of trees, of this folder and of those below it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import scan

from metatree import UserError

pytestmark = pytest.mark.integration


IGNORE = 'ignore = ["docs/private/", "*.pay"]\n'


@pytest.fixture
def settled(tmp_path: Path) -> Path:
    """Return a folder whose settings leave something out of trees."""
    (tmp_path / "metatree.toml").write_text(IGNORE)
    for name in ("docs/guide.md", "docs/private/a.md", "docs/x.pay"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    return tmp_path


def test_settings_hold_for_the_folders_below(settled: Path) -> None:
    assert set(scan(settled).files) == {"metatree.toml", "docs/guide.md"}
    assert set(scan(settled / "docs").files) == {"guide.md"}
    # Asked for by its name; what else they leave out stays out.
    (settled / "docs" / "private" / "x.pay").write_text("text\n")
    assert set(scan(settled / "docs" / "private").files) == {"a.md"}
    # Those below go before those above.
    (settled / "docs" / "pyproject.toml").write_text('[tool.metatree]\nignore = "!*.pay"\n')
    assert set(scan(settled / "docs").files) == {"guide.md", "x.pay", "pyproject.toml"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_settings_above_that_belong_to_nobody_here_are_passed_over(settled: Path) -> None:
    docs = settled / "docs"
    (settled / "pyproject.toml").write_text('[tool.metatree]\nignore = ["guide.md"]\n')
    os.chown(settled / "metatree.toml", 4_321, 4_321)
    assert set(scan(docs).files) == {"private/a.md", "x.pay"}
    os.chown(docs, 4_321, 4_321)
    assert set(scan(docs).files) == set()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("metatree.toml", "ignore = 3\n", "must be a text or a list of texts"),
        ("metatree.toml", "<<<<<<< HEAD\n" + IGNORE, "are no TOML"),
        ("pyproject.toml", "<<<<<<< HEAD\n[tool.metatree]\n" + IGNORE, "are no TOML"),
        (
            "metatree.toml",
            f"ignore = {[f'*{n}.x' for n in range(1_001)] + ['docs/private/']}\n",
            "more patterns",
        ),
    ],
)
def test_nothing_is_read_where_nobody_knows_what_settings_leave_out(
    settled: Path, name: str, text: str, says: str
) -> None:
    (settled / "metatree.toml").unlink()
    (settled / name).write_text(text)
    for folder in (settled, settled / "docs"):
        with pytest.raises(UserError, match=says):
            scan(folder)
    with pytest.raises(UserError, match=says):
        build_tree(settled / "docs")


def test_a_tree_keeps_what_it_has_while_settings_cannot_be_read(settled: Path) -> None:
    build_tree(settled).close()
    (settled / "metatree.toml").write_text("<<<<<<< HEAD\n" + IGNORE)
    with pytest.raises(UserError, match="are no TOML"):
        build_tree(settled)
    (settled / "metatree.toml").write_text(IGNORE)
    with build_tree(settled) as tree:
        assert "docs/guide.md" in tree and "docs/private/a.md" not in tree


def test_settings_may_be_one_text_of_several_lines(settled: Path) -> None:
    (settled / "metatree.toml").write_text('ignore = """\ndocs/private/\n*.pay\n"""\n')
    assert set(scan(settled).files) == {"metatree.toml", "docs/guide.md"}


def test_what_both_files_of_a_folder_ignore_is_left_out(settled: Path) -> None:
    (settled / "metatree.toml").write_text('k = 8\nignore = ["*.pay"]\n')
    (settled / "pyproject.toml").write_text('[tool.metatree]\nignore = ["docs/private/"]\n')
    assert set(scan(settled / "docs").files) == {"guide.md"}
    assert set(scan(settled).files) == {"metatree.toml", "pyproject.toml", "docs/guide.md"}


@pytest.mark.parametrize("place", [".aws/sso", ".ssh", ".ssh/work/old", ".gnupg/x"])
def test_a_folder_of_secrets_has_none_of_its_files_as_nodes_wherever_one_begins(
    tmp_path: Path, place: str
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "cache.txt").write_text("text\n")
    for root in (
        tmp_path,
        *(tmp_path / each for each in (folder, *folder.parents) if each.is_relative_to(tmp_path)),
    ):
        assert scan(root).files == {}
        assert "may hold secrets" in str([*scan(root).omissions.values()])
    assert len(scan(folder, include_secrets=True).files) == 1
