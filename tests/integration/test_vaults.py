"""Folders of notes as memory: links and backlinks, tags, front matter, days, who wrote which line, two writers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.tools.functions import function_tools
from metatree_memory_tools import build_tree
from metatree_memory_tools.text._tools import linked_notes

from metatree import Tree, UserError, search

pytestmark = pytest.mark.integration

NOTES = {
    "Boats/Ketch.md": """---
title: The ketch
aliases:
  - Old Lady
  - "Nell"
tags: [boat, yard/berth-4]
status: sold
owner: '[[Ann Lee]]'
who: bob
created: 2024-05-17
---

# Ketch

Painted by [[ann lee|Ann]] in May #paint. ^painted

## Sails

See [[Sails#Main sail]] and ![[mast.png]] and [[Nowhere]].

```
[[In Code]] #nocode
```
""",
    "Boats/Sails.md": """# Sails

Of [[Nell]] and of [the ketch](Ketch.md#sails), [outside](https://x.org/Ketch.md), #1.
""",
    "People/Ann Lee.md": "# Ann Lee\n\nWorks with [[Boats/Ketch]].\n",
    "journal/2024-05-17.md": "- Sold [[old lady]] today\n- tea `#notag`\n",
    "journal/2024_05_18.md": "Nothing.\n",
    "CLAUDE.md": "Read @docs/rules.md first.\n",
    "docs/rules.md": "# Rules\n\nBe kind.\n",
    "Loops/A.md": "[[B]]\n",
    "Loops/B.md": "[[A]] [[B]]\n",
    "Sails.md": "# Another of this name\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def leads(tree: Tree, path: str) -> list[str]:
    return sorted(other for _, other in tree.links(path, "links"))


def led(tree: Tree, path: str) -> list[str]:
    return sorted(other for _, other in tree.links_to(path, "links"))


def test_links_lead_to_notes_by_name_path_and_alias(vault: Path) -> None:
    with build_tree(vault) as tree:
        assert leads(tree, "Boats/Ketch.md") == ["Boats/Sails.md", "People/Ann Lee.md"]
        assert leads(tree, "Boats/Sails.md") == ["Boats/Ketch.md", "Boats/Ketch.md#sails"]
        assert led(tree, "Boats/Ketch.md") == ["Boats/Sails.md", "People/Ann Lee.md", "journal/2024-05-17.md"]
        assert leads(tree, "CLAUDE.md") == ["docs/rules.md"]
        assert (leads(tree, "Loops/A.md"), leads(tree, "Loops/B.md")) == (["Loops/B.md"], ["Loops/A.md"])
        assert led(tree, "Sails.md") == [], "the one beside is meant"


def test_links_to_headings_lead_to_their_sections_while_these_are_there(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    intro = "# Sails\n\nOf [[Nell#^painted]] and [x](Ketch.md#sails).\n\n"
    text = intro + "## Main sail: the *big* one\n\nRed.\n\n## Jib\n\nBlue.\n"
    (vault / "Boats/Sails.md").write_text(text)
    (vault / "Boats/Rig.md").write_text(
        "# Rig\n\n[[Sails#Main sail the big one]], [[sails#jib|it]], [[Sails#Sails#Jib]], [[Sails#Gone]]\n"
    )
    main, jib = "Boats/Sails.md#main-sail-the-big-one", "Boats/Sails.md#jib"
    with build_tree(vault) as tree:
        assert leads(tree, "Boats/Rig.md") == ["Boats/Sails.md", jib, main]
        assert leads(tree, "Boats/Sails.md") == ["Boats/Ketch.md", "Boats/Ketch.md#sails"]
        assert led(tree, main) == ["Boats/Rig.md"]
        shown = linked_notes.function(tree.get("Boats/Rig.md"), tree)
        assert f"links to {jib}\n  line 3: [[Sails#Main sail" in shown
        (vault / "Boats/Sails.md").write_text(text.replace("## Jib", "## Gone"))
        tree.refresh()
        assert leads(tree, "Boats/Rig.md") == ["Boats/Sails.md", "Boats/Sails.md#gone", main]
    assert run(["show", main, "--source", str(vault)]) == 0
    assert "linked from Boats/Rig.md" in capsys.readouterr().out


def test_names_go_before_aliases_and_properties_have_names_in_any_script(vault: Path) -> None:
    (vault / "Boats/Nell.md").write_text("# Nell\n\nA dinghy.\n")
    (vault / "Boats/Kutter.md").write_text("---\nfrüher: '[[Nell]]'\n原因: 取代 [[Sails]]\n---\nA cutter.\n")
    with build_tree(vault) as tree:
        assert leads(tree, "Boats/Kutter.md") == ["Boats/Nell.md", "Boats/Sails.md"]
        assert tree.get("Boats/Kutter.md").attributes["properties"]["原因"] == "取代 [[Sails]]"
        assert "Boats/Nell.md" in leads(tree, "Boats/Sails.md"), "and not the ketch, which is called so, too"


def test_links_follow_when_notes_come_go_and_get_other_names(vault: Path) -> None:
    with build_tree(vault) as tree:
        (vault / "Nowhere.md").write_text("# Nowhere\n")
        (vault / "Boats/Sails.md").unlink()
        tree.refresh()
        assert leads(tree, "Boats/Ketch.md") == ["Nowhere.md", "People/Ann Lee.md", "Sails.md"]
        text = (vault / "Boats/Ketch.md").read_text().replace("Old Lady", "Old Boat")
        (vault / "Boats/Ketch.md").write_text(text)
        tree.refresh()
        assert leads(tree, "journal/2024-05-17.md") == []


def test_what_a_note_says_of_itself_is_on_its_node(vault: Path) -> None:
    with build_tree(vault) as tree:
        ketch = tree.get("Boats/Ketch.md")
        about = ketch.attributes
        assert about["tags"] == ["boat", "yard/berth-4", "paint"]
        assert about["aliases"] == ["Old Lady", "Nell"]
        assert (about["who"], about["at"], about["title"]) == ("bob", "2024-05-17", "The ketch")
        assert about["properties"]["status"] == "sold"
        assert about["properties"]["owner"] == "[[Ann Lee]]"
        assert list(about["blocks"]) == ["painted"]
        line = about["blocks"]["painted"]
        assert (vault / "Boats/Ketch.md").read_text().split("\n")[line - 1].endswith("^painted")
        assert "Old Lady" in ketch.description
        assert tree.get("journal/2024-05-17.md").attributes["at"] == "2024-05-17"
        assert tree.get("journal/2024_05_18.md").attributes["at"] == "2024-05-18"
        assert "tags" not in tree.get("journal/2024-05-17.md").attributes, "code has no tags"
        assert "#ketch" not in str(search("Who is the Old Lady?", tree=tree, returns="nodes").ended)
        found = search("the Old Lady", tree=tree, returns="nodes").nodes
        assert found[0].path == "Boats/Ketch.md"


def test_links_are_shown_with_their_lines(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with build_tree(vault) as tree:
        shown = linked_notes.function(tree.get("Boats/Ketch.md"), tree)
        assert "linked from journal/2024-05-17.md\n  line 1: - Sold [[old lady]] today" in shown
        assert "links to People/Ann Lee.md (Ann Lee)\n" in shown
        assert "Painted by [[ann lee|Ann]]" in shown
        with pytest.raises(UserError, match="none links to it"):
            linked_notes.function(tree.get("Sails.md"), tree)
    assert run(["show", "Boats/Ketch.md", "--source", str(vault)]) == 0
    out = capsys.readouterr().out
    assert "links to Boats/Sails.md, People/Ann Lee.md" in out
    assert "linked from Boats/Sails.md, People/Ann Lee.md, journal/2024-05-17.md" in out
    assert run(["show", "Boats/Ketch.md", "--json", "--source", str(vault)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["links"] == ["Boats/Sails.md", "People/Ann Lee.md"]
    assert len(said["linked_from"]) == 3


def test_the_audit_says_who_wrote_which_lines(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def commit(who: str) -> None:
        for words in (
            ["add", "."],
            ["-c", f"user.name={who}", "-c", "user.email=x@x.org", "commit", "-qm", "Write"],
        ):
            subprocess.run(["git", *words], cwd=vault, check=True, capture_output=True)

    subprocess.run(["git", "init", "-q"], cwd=vault, check=True)
    commit("Ann")
    with (vault / "Boats/Sails.md").open("a") as file:
        file.write("\n## Jib\n\nTorn in June.\n")
    commit("Bob")
    build_tree(vault, history=True).close()
    assert run(["audit", "Boats/Sails.md#jib", "--source", str(vault), "--json"]) == 0
    written = "\n".join(json.loads(capsys.readouterr().out)["written"])
    assert "Bob" in written and "Torn in June." in written and "Ann" not in written
    assert run(["audit", "Boats/Sails.md", "--source", str(vault)]) == 0
    out = capsys.readouterr().out
    assert "Ann" in out and "Bob" in out


WRITER = """
import sys
from pathlib import Path
from metatree.notes.note_file import keep_note
folder, who = Path(sys.argv[1]), sys.argv[2]
for number in range(40):
    keep_note(folder, f"Note {number} of {who} on the ketch.", "The ketch", who=who)
    if who == "ann":
        path = folder / "shared.md"
        path.write_text(path.read_text() + f"line {number}\\n")
"""


def test_two_writers_at_once_lose_nothing(vault: Path) -> None:
    """One edits a note of hers meanwhile, as in an editor; both keep notes under one title."""
    folder = vault / "Boats"
    (folder / "shared.md").write_text("# Shared\n")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, folder, who]) for who in ("ann", "bob")]
    assert [process.wait() for process in running] == [0, 0]
    texts = [path.read_text() for path in folder.glob("the-ketch*.md")]
    for who in ("ann", "bob"):
        for number in range(40):
            assert sum(f"Note {number} of {who} on" in text for text in texts) == 1
    assert (folder / "shared.md").read_text().count("line") == 40
    assert not list(folder.glob(".note-*"))
    with build_tree(vault) as tree:
        assert (
            sum(node.id.startswith("Boats/the-ketch") and node.kind == "file" for _, node in tree.walk())
            == 80
        )


def test_other_agents_are_served_a_vault(vault: Path) -> None:
    with build_tree(vault) as tree:
        tools = {tool.name: tool for tool in function_tools(tree)}
        listing = json.loads(tools["browse"](node="Boats/Ketch.md"))
        assert listing["links"] == ["Boats/Sails.md", "People/Ann Lee.md"]
        assert "journal/2024-05-17.md" in listing["linked_from"]
        assert "Painted by" in tools["read"](node="Boats/Ketch.md")


@pytest.mark.parametrize(
    "text",
    [
        "---\n: :\n- x\n  y\nkey:\n---\n",
        "---\ntags: [a, 'b, \"c]\naliases: [[x]]\n---\n",
        "---\nno end\n",
        "[[" * 5000,
        "[[a|" * 5000 + "]]",
        "[x](" * 5000,
        "#" * 5000 + "a",
        "^" * 5000,
        "---\n" + "a: &a [*a, *a]\n" * 2000 + "---\n",
        "\ufeff---\ntags: x\n---\n# T\n",
    ],
)
def test_notes_that_are_out_of_form_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    with build_tree(tmp_path) as tree:
        assert "note" not in tree.get("a.md").attributes
