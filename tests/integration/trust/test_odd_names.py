"""Files and folders whose names mean something elsewhere: an option, the home, a module, a store."""

from __future__ import annotations

import os
import shlex
import shutil

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import scan

from metatree import Tree, plugins
from metatree.errors import UserError
from metatree.notes.notes import forget, remember
from tests.integration.trust.prepared import (
    Clone,
)

pytestmark = pytest.mark.integration


def test_ones_own_stores_are_no_nodes_by_another_name_of_the_disk(clone: Clone) -> None:
    """Where the disk tells no case apart; a link stands for its other names here."""
    for name in (".Metatree", ".GIT", "kept"):
        (clone.folder / name).mkdir()
        (clone.folder / name / "b.md").write_text("# The memory\n\nThe PASSPHRASE.\n")
    (clone.folder / "other").symlink_to(clone.folder / "kept")
    assert set(scan(clone.folder, exclude="other").files) == {"a.md"}


def test_git_passes_over_a_tree_whatever_the_clone_says_of_it(clone: Clone) -> None:
    file, other = clone.metatree / ".gitignore", clone.folder.parent / "notes"
    other.write_text("*\n!memory.db\n")
    file.unlink()
    os.link(other, file)
    build_tree(clone.folder).close()
    assert file.read_text() == "*\n"
    assert other.read_text() == "*\n!memory.db\n"


@pytest.mark.parametrize("way", ["", "."])
def test_a_plug_in_that_lies_in_the_current_folder_is_none(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Python looks for packages there, too, at a prompt and in a notebook."""
    package = clone.folder / "evil.egg-info"
    package.mkdir()
    (package / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[metatree.memory_types]\nevil = evilmod:Evil\n")
    (clone.folder / "evilmod.py").write_text(f"open({str(clone.started)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(clone.folder) if way else "")
    assert "evil" not in plugins.names(plugins.MEMORY_TYPES)
    build_tree(clone.folder).close()
    assert not clone.has_acted()
    monkeypatch.chdir(clone.folder.parent)
    if way:  # whoever names the folder means it
        assert "evil" in plugins.names(plugins.MEMORY_TYPES)


@pytest.mark.parametrize("text", ["@private.txt", "-", "--help", "plain"])
def test_the_command_that_brings_a_memory_back_reads_no_file(
    clone: Clone, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    shutil.rmtree(clone.metatree)
    (clone.folder / "private.txt").write_text("PASSPHRASE\n")
    with build_tree(clone.folder) as tree:
        made = remember(tree, text, "note", who="ann").node
        words = shlex.split(forget(tree, made).command)
    assert run(words[1:]) == 0
    with Tree.open(clone.folder) as tree:
        (back,) = [tree.get(node) for _, node in tree.walk() if node.kind == "memory"]
        assert (back.content, back.title, back.provenance["who"]) == (text, "note", "ann")


def test_a_folder_that_is_called_as_the_home_is_that_folder(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = clone.secret.parent
    monkeypatch.setenv("HOME", str(home))
    (clone.folder / "~").mkdir()
    (clone.folder / "~" / "b.md").write_text("# The lake\n\nThe lake is in the north.\n")
    with build_tree("~") as tree:
        assert tree.source_root == clone.folder / "~"
    assert run(["build", "~"]) == 0 and not (home / ".metatree").exists()
    with pytest.raises(UserError, match="no user has that home"):
        build_tree("~nobody-of-this-name")


def test_what_is_installed_into_a_project_is_written_through_no_link_of_it(clone: Clone) -> None:
    notes = clone.folder / "notes.txt"
    notes.write_text("mine\n")
    skill = clone.folder / ".claude" / "skills" / "metatree" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.symlink_to(notes)
    run(["install", "claude-code", "--project"])
    assert notes.read_text() == "mine\n"


@pytest.mark.parametrize("name", ["--source=~", "--tree=~", "--history", "-y"])
def test_a_file_that_is_called_as_an_option_is_none(
    clone: Clone, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As the shell gives them for `metatree build *`."""
    home = clone.secret.parent
    monkeypatch.setenv("HOME", str(home))
    shutil.rmtree(clone.metatree)
    (clone.folder / name).touch()
    assert run(["build", "a.md", name]) == 2
    assert "the name of a file here" in capfd.readouterr().err
    assert not clone.metatree.exists() and not (home / "index.db").exists()
    assert run(["build", "--", "a.md"]) == 0
    assert run(["remember", "--", name]) == 0
