"""Memories as files in a folder of notes: as a person writes them, never over what is there, followed by the tree."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree

from metatree import Tree, UserError, search
from metatree.notes.note_file import keep_note

NOON = 1_767_600_000.0


def _keep(folder: Path, text: str, title: str | None = None, why: str | None = None) -> Path:
    return keep_note(folder, text, title, who="ann", why=why, now=lambda: NOON).path


def test_a_note_reads_as_if_a_person_had_written_it(tmp_path: Path) -> None:
    file = _keep(tmp_path, "Boats are painted in May.\nBlue, that is.", "Paint: boats?", "a call: 3 May")
    assert file.name == "paint-boats.md"
    assert file.read_text(encoding="utf-8") == (
        '---\nwho: ann\nwhen: "2026-01-05T08:00:00+00:00"\nwhy: "a call: 3 May"\n---\n\n'
        "# Paint: boats?\n\nBoats are painted in May.\nBlue, that is.\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["paint-boats.md"], "no file is left over"


def test_what_is_there_is_never_written_to(tmp_path: Path) -> None:
    first = _keep(tmp_path, "Boats are blue.", "Boats")
    first.write_text("Edited by hand.", encoding="utf-8")
    second = _keep(tmp_path, "Boats are red.", "Boats")
    assert (second.name, first.read_text(encoding="utf-8")) == ("boats-2.md", "Edited by hand.")
    again = keep_note(tmp_path, "Boats  are red.", "Boats", who="bob")
    assert (again.path, again.known) == (second, True)


def test_notes_that_are_kept_at_once_are_all_there(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(lambda number: _keep(tmp_path, f"Boat {number}.", "Boats"), range(24)))
    assert len(set(files)) == 24
    assert {file.read_text(encoding="utf-8").split()[-2:][1] for file in files} == {
        f"{n}." for n in range(24)
    }


@pytest.mark.parametrize("title", ["../../etc/passwd", ".hidden", "///", "Ünïcode Wörter", "x" * 500])
def test_a_title_is_never_a_path(tmp_path: Path, title: str) -> None:
    file = _keep(tmp_path, "Text.", title)
    assert file.parent == tmp_path
    assert not file.name.startswith(".")
    assert len(file.name) < 100


def test_no_text_or_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to remember"):
        _keep(tmp_path, "  ")
    with pytest.raises(UserError, match="no folder"):
        _keep(tmp_path / "none", "Text.")


def test_the_tree_follows_and_knows_who_when_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = tmp_path / "vault"
    (vault / "boats").mkdir(parents=True)
    (vault / "boats" / "old.md").write_text("# Old\n\nThe sloop is old.\n", encoding="utf-8")
    build_tree(vault).close()
    monkeypatch.chdir(vault)
    told = ["remember", "The ketch is painted in May.", "--to", "boats", "--who", "ann", "--from", "a call"]
    assert run([*told, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["node"]["id"], said["known"]) == ("boats/the-ketch-is-painted-in-may.md", False)
    assert run(told) == 0
    assert "known already" in capsys.readouterr().out
    with Tree.open(vault) as tree:
        attributes = tree.get("boats/the-ketch-is-painted-in-may.md").attributes
        assert (attributes["who"], attributes["why"]) == ("ann", "a call")
        assert attributes["at"][:2] == "20"
        found = search("When is the ketch painted?", tree=tree, returns="nodes", k=1)
        assert found.nodes[0].id.startswith("boats/the-ketch")
    assert run(["remember", "x", "--to", str(tmp_path)]) == 2
    assert "no folder of the tree" in capsys.readouterr().err
    assert run(["remember", "x", "--to", "boats", "--under", "boats"]) == 2


def test_tags_and_dates_of_front_matter_are_attributes(tmp_path: Path) -> None:
    note = "---\ntitle: Boats\nauthor: Ann\ndate: 2026-05-03\ntags: [blue, '#sea']\n---\n\nText.\n"
    (tmp_path / "a.md").write_text(note, encoding="utf-8")
    with build_tree(tmp_path) as tree:
        attributes = tree.get("a.md").attributes
        assert (attributes["who"], attributes["at"], attributes["tags"]) == (
            "Ann",
            "2026-05-03",
            ["blue", "sea"],
        )


@pytest.mark.parametrize("title", [None, "The key ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"])
def test_the_name_of_a_file_has_no_part_of_a_secret(tmp_path: Path, title: str | None) -> None:
    file = _keep(
        tmp_path, "The key ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5 is old, and Bob has the new one.", title
    )
    assert file.name.startswith("the-key") and "b3de5" not in file.name
