"""What a text of a stranger may cost, type by type: each of these took minutes or gigabytes once."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from metatree_agents.service.database.backup import _BATCH_BYTES, _batches
from metatree_memory_tools import build_tree
from metatree_memory_tools.git._gitignore import MOST_WILD, Patterns
from metatree_memory_tools.text import _tools
from metatree_memory_tools.web import _links
from metatree_memory_tools.web._links import links_of
from metatree_routers.passages import _wanted
from metatree_routers.passages.release import release_above
from metatree_routers.query.best_line import best_line

from metatree import Tree
from metatree._util.normal_form import most_marks, nfc
from metatree._util.secret_text import masked
from metatree.errors import UntrustedStore, UserError
from metatree.notes.archive import _quarantine, export_memory, import_memory
from metatree.notes.note_file import keep_note
from metatree.notes.notes import forget, remember
from tests.integration.trust.prepared import Clone
from tests.integration.trust.test_costs import at_most

pytestmark = pytest.mark.integration

PAGE = ".TH TEA 1\n.SH NAME\ntea\n"
MARKS = "\u0315\u0300"


def built(clone: Clone, name: str, text: str) -> Tree:
    """Build a folder with one more file; what the rest of it says is there."""
    (clone.folder / name).write_text(text, encoding="utf-8")
    tree = build_tree(clone.folder)
    assert "in the south" in tree.content("a.md")
    return tree


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tea.1", f"{PAGE}.TS\nl l.\n{'T{' + chr(10)}.TE\n".replace("T{\n", "T{\n" * 600_000)),
        ("small.1", f"{PAGE}.TS\nl l.\n" + "T{\n" * 20_000 + ".TE\n"),
        ("a.py", '"""a' + "\n" * 400_000 + 'a"""\n'),
        ("b.py", f"from .{'a' * 1_500_000} import {'a,' * 118_000}a\n"),
        ("c.py", f"a{MARKS * 120_000}=1\n"),
        ("d.py", f"import {'.'.join(['℘'] * 60_000)}\n"),
        ("e.ex", "defmodule A do\n" + '@doc "";' * 12_000 + "\n" * 100_000 + "end\n"),
        ("f.c", " " * 700_000 + "/**/" * 175_000 + "\n" * 1_500),
        ("g.h", "\n" * 20_000),
        ("h.scala", f"import {'a.' * 333}{{{'b,' * 160}b}}\n" * 400),
        ("note.md", f"---\ntags: [a,{'[[,' * 600_000}]\n---\n# Note\n"),
    ],
    ids=[
        "table",
        "small table",
        "docstring",
        "import",
        "marks",
        "name",
        "attributes",
        "comments",
        "header",
        "imports",
        "tags",
    ],
)
def test_a_text_takes_a_time_that_grows_with_its_length(clone: Clone, name: str, text: str) -> None:
    with built(clone, name, text) as tree:
        assert name in tree


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of the memory of a process")
@pytest.mark.parametrize("name", ["a.c", "A.java"])
def test_code_whose_parse_takes_gigabytes_is_left_out_alone(clone: Clone, name: str) -> None:
    """The parser of tree-sitter can be stopped by nothing but the end of its process."""
    with built(clone, name, "a=>" * 7_000 + "\n" * 16) as tree:
        assert dict(tree.omissions()) == {name: "not read: it ended the process that read it"}


@pytest.mark.parametrize("text", [f"A{'a' * 200_000}", "1" * 200_000, "A'" * 100_000, "Aa " * 60_000])
def test_what_is_asked_for_is_looked_for_in_linear_time(text: str) -> None:
    assert list(_wanted._DOER.finditer(f"{text}. Ann paints it"))
    assert not _wanted.WANTED["code"].search(text)


def test_the_line_that_matches_best_is_found_among_many_forms_of_a_word() -> None:
    lines = "\n".join(f"zebra_{number:06} stripes" for number in range(4_900))
    assert best_line(lines * 8, {"zebra": 1.0}).startswith("zebra_")


def test_who_signed_an_entry_is_looked_for_near_it() -> None:
    lines = ["tea (1.0)", "", *["ab"] * 200_000, " -- Ann  Mon"]
    assert all(release_above(lines, [0], first) == "tea (1.0)" for first in range(1, 20_000))


@pytest.mark.parametrize("rows", [70, 2_000])
def test_strings_of_a_manual_page_put_no_more_into_it_than_its_limit(clone: Clone, rows: int) -> None:
    text = f"{PAGE}.ds x {chr(0x1F600) * 900}\n" + ("\\*x" * 300 + "\n") * rows
    with at_most(150), built(clone, "tea.1", text) as tree:
        assert "tea.1" in tree


@pytest.mark.parametrize("length", [10, 100_000])
def test_what_a_manual_page_shows_is_masked_for_every_tool(clone: Clone, length: int) -> None:
    key = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    text = f"{PAGE}zeta \\fBghp_\\fR{key} end\n.SH NOTES\n{'Fill the kettle. ' * length}\n"
    with built(clone, "tea.1", text) as tree:
        found = _tools.find_in_text(tree.get("tea.1"), tree, text="zeta")
        shown = tree.content("tea.1#name") + str(found)
        assert shown.count("zeta") > 1 and key not in shown


def test_names_of_passwords_without_values_are_masked_in_the_time_of_other_texts() -> None:
    text = "pass=***" * 30_000
    assert masked(text) == (text, 0)


def test_patterns_with_many_wildcards_count_as_several() -> None:
    patterns = Patterns(b"\n".join(b"[!a]" * 244 + b"%d" % number for number in range(500)))
    assert patterns.is_cut and patterns.count < 20
    assert not Patterns(b"*.py[cod]\n" * MOST_WILD).is_cut


def test_marks_are_put_into_order_a_few_at_a_time() -> None:
    assert nfc("e\u0301") == "é" and most_marks("Ä" * 200) == 0 and most_marks(f"a{MARKS * 60}b") == 120
    text = f"a{MARKS * 200_000}"
    assert nfc(nfc(text)) == nfc(text)


def test_a_memory_of_many_marks_can_be_forgotten(clone: Clone) -> None:
    with Tree.create(clone.folder / "own.mtree") as tree:
        made = remember(tree, f"a{MARKS * 90_000}", who="ann")
        assert forget(tree, made.node.id)


def hostile_export(clone: Clone, text: str) -> Path:
    """Return an export of somebody else, of which each memory says a text."""
    with Tree.create(clone.folder / "other.mtree") as tree:
        for number in range(3):
            remember(tree, f"REPLACED {number}", who="eve")
        export_memory(tree, clone.folder / "e.metatree")
    target = clone.folder / "bad.metatree"
    with zipfile.ZipFile(clone.folder / "e.metatree") as old, zipfile.ZipFile(target, "w", 8) as new:
        rows = [json.loads(line) for line in old.read("nodes.jsonl").decode().splitlines()]
        for row in rows:
            row["content"] = text if row["kind"] == "memory" else row["content"]
        manifest = json.loads(old.read("manifest.json"))
        manifest.pop("mark")
        for name in old.namelist():
            data = {"manifest.json": json.dumps(manifest)}.get(name) or old.read(name)
            lines = "\n".join(map(json.dumps, rows)) + "\n"
            new.writestr(name, lines if name == "nodes.jsonl" else data)
    return target


def test_a_long_text_of_an_export_of_somebody_else_is_cut(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_quarantine, "_MOST_TEXT", 1_000)
    export = hostile_export(clone, "The harbour. " * 1_000)
    with Tree.create(clone.folder / "own.mtree") as tree:
        report = import_memory(tree, export)
        assert report.folder is not None
        below = (node for _, node in tree.walk(report.folder) if node.content_kept)
        texts = [tree.content(node) for node in below]
        assert texts and all("… cut: 12,000 more characters" in text and len(text) < 1_100 for text in texts)


def test_an_export_of_somebody_else_that_holds_too_much_is_refused(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_quarantine, "_MOST_BYTES", 100_000)
    export = hostile_export(clone, "The harbour. " * 5_000)
    with Tree.create(clone.folder / "own.mtree") as tree:
        with pytest.raises(UntrustedStore, match="--trust"):
            import_memory(tree, export)
        assert len(tree) == 1


def test_rows_of_a_backup_are_put_in_by_their_size() -> None:
    line = b"x" * (_BATCH_BYTES // 2)
    assert [len(batch) for batch in _batches([line] * 5)] == [2, 2, 1]
    assert [len(batch) for batch in _batches([b"x"] * 150)] == [100, 50]


def test_links_of_a_page_are_looked_for_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_links, "_LIMIT_S", 1.0)
    rows = '<a href="https://example.org/x">X</a>' + "<p>The harbour</p>" * 10_000
    assert [link.text for link in links_of(rows, "https://example.org/")] == ["X"]
    assert links_of("<div>" * 300_000 + '<a href="https://example.org/x">', "https://example.org/") == []


def letters(count: int, answers: int) -> dict[str, str]:
    """Return mail folders in which a letter has the same name and other words in each, with answers to it."""
    head = "From a@b Mon Jan  1 10:00:00 2024\nFrom: A <a@b>\nSubject: s\nMessage-ID: "
    return {
        f"{number}.mbox": f"{head}<x@x>\n\nfirst {number}\n\n"
        + "".join(f"{head}<{number}.{each}@x>\nIn-Reply-To: <x@x>\n\nok\n\n" for each in range(answers))
        for number in range(count)
    }


def test_answers_to_many_letters_of_one_name_take_no_square(clone: Clone) -> None:
    with zipfile.ZipFile(clone.folder / "mail.zip", "w", 8) as packed:
        for name, text in letters(600, 40).items():
            packed.writestr(name, text)
    with build_tree(f"chats:{clone.folder / 'mail.zip'}", out=clone.folder / "t") as tree:
        (top,) = tree.children()
        assert top.attributes["messages"] == 600 * 41


def test_an_answer_stands_behind_what_its_own_file_says(clone: Clone) -> None:
    with zipfile.ZipFile(clone.folder / "mail.zip", "w") as packed:
        for name, text in letters(2, 1).items():
            packed.writestr(name, text)
    with build_tree(f"chats:{clone.folder / 'mail.zip'}", out=clone.folder / "t") as tree:
        turns = {node.id: node for _, node in tree.walk() if node.kind == "turn"}
        replies = {node.attributes["reply_to"] for node in turns.values() if "reply_to" in node.attributes}
        assert len(turns) == 4 and len(replies) == 2
        assert {tree.content(each).split()[-1] for each in replies} == {"0", "1"}


def test_a_letter_or_a_chat_out_of_form_takes_no_other_along(clone: Clone) -> None:
    folder = clone.folder / "c"
    folder.mkdir()
    good = "From: Ann <a@b>\nSubject: Harbour\n\nThe harbour is in the south.\n"
    (folder / "good.eml").write_text(good)
    (folder / "bad.eml").write_text(f"Content-Transfer-Encoding: {'(' * 1_000}\n{good}")
    message = {
        "id": "1",
        "author": {"name": "Bo"},
        "content": "The quay is long",
        "attachments": 7,
        "embeds": 7,
    }
    channel = {"id": "5", "name": "quay"}
    (folder / "discord.json").write_text(
        json.dumps({"guild": {"id": "1"}, "channel": channel, "messages": [message, {**message, "id": {}}]})
    )
    with build_tree(f"chats:{folder}", out=clone.folder / "t") as tree:
        texts = "\n".join(tree.content(node) for _, node in tree.walk() if node.kind == "turn")
        assert "in the south" in texts and "The quay is long" in texts and "cannot be read" in texts


@pytest.mark.skipif(os.link not in os.supports_dir_fd, reason="needs folders that are opened")
def test_a_note_is_written_through_no_link_where_its_place_was_looked_at(
    clone: Clone, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    link = clone.folder / "notes"
    link.symlink_to(private)
    with pytest.raises(UserError, match="cannot write"):
        keep_note(link, "The harbour is closed", who="ann", links=False)
    assert list(private.iterdir()) == []
    assert keep_note(link, "The harbour is closed", who="ann").path.parent == private.resolve()
