"""Forgetting by author, source and time, and the proof that nothing is left: index, memory, boards, journals."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree
from metatree_memory_tools.conversations import ConversationLog

from metatree import Node, Tree, UserError, forget, memories, remember, search
from metatree.blackboard import Blackboard
from metatree.notes.audit import audit
from metatree.notes.erasure import _COLUMNS, Said, Trace, forget_said, meant, settle, traces, wipe
from metatree.notes.wishes import standing

SECRET = "The zebra vault opens with the quagmire password at dawn."


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "readme.md").write_text("# Boats\n\nBoats are kept in the yard.\n", encoding="utf-8")
    build_tree(folder).close()
    monkeypatch.chdir(folder)
    return folder


def _holding(folder: Path, words: str) -> list[str]:
    return sorted(
        file.name for file in folder.rglob("*") if file.is_file() and words.encode() in file.read_bytes()
    )


def test_forgetting_by_author_leaves_nothing_anywhere_and_proves_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.open(project) as tree:
        remember(tree, SECRET, who="ann")
        remember(tree, "Boats are painted in May.", who="bob")
        board = Blackboard(tree)
        found = search("What opens the zebra vault?", tree=tree, blackboard=board)
        assert "quagmire" in found.answer
        board.add_requests({"request": f"Remember: {SECRET}"})
        board.add_requests({"request": "Paint the boats."})
    assert _holding(project, "quagmire") != []
    assert run(["forget", "--by", "ann", "--yes", "--verify"]) == 0
    assert "verified: no word of it is left" in capsys.readouterr().err
    assert _holding(project, "quagmire") == [], "neither tables nor what SQLite had freed"
    with Tree.open(project) as tree:
        assert [node.content for node in memories(tree)] == ["Boats are painted in May."]
        assert [item.data["request"] for item in Blackboard(tree).items(sections="requests")] == [
            "Paint the boats."
        ]
        assert search("When are boats painted?", tree=tree, returns="nodes").nodes


def test_a_wish_among_many_memories_is_gone_from_the_file_too(project: Path) -> None:
    with Tree.open(project) as tree:
        remember(tree, "Always name the quagmire when I ask about libraries.", who="ann")
        search("Which libraries are there?", tree=tree, returns="nodes")
        remember(tree, "I no longer prefer tea.", who="ann")
    assert run(["forget", "--by", "ann", "--yes", "--verify"]) == 0
    assert _holding(project, "quagmire") == []


def test_copies_beside_the_tree_are_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Tree.open(project) as tree:
        remember(tree, SECRET, who="ann")
        settle(tree.memory)
    shutil.copy(project / ".metatree" / "memory.db", project / "memory.db.bak")
    assert run(["export", "all.metatree.zip"]) == 0
    (project / "old.tar.gz").write_bytes(b"packed")
    locked = (project / "all.metatree.zip").read_bytes()
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # as if a password were needed
        parts = locked.split(header)
        locked = header.join([parts[0], *(p[: flags - 4] + b"\x01" + p[flags - 3 :] for p in parts[1:])])
    (project / "locked.zip").write_bytes(locked)
    capsys.readouterr()
    assert run(["forget", "--by", "ann", "-y", "--verify", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert {Path(each["place"]).name: each["what"] for each in said["traces"]} == {
        "memory.db.bak": "",
        "all.metatree.zip": "",
        "locked.zip": "not looked into: it is packed",
        "old.tar.gz": "not looked into: it is packed",
    }


def test_a_bomb_or_a_damaged_file_beside_the_tree_is_named_and_not_unpacked(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree.notes.erasure._MOST_UNPACKED", 10_000_000)
    with Tree.open(project) as tree:
        remember(tree, SECRET, who="ann")
        settle(tree.memory)
    for name, how, data in (
        ("1.zip", zipfile.ZIP_DEFLATED, b"x"),
        ("2.zip", zipfile.ZIP_DEFLATED, bytes(50_000_000)),
        ("3.zip", zipfile.ZIP_STORED, b"x"),
    ):
        with zipfile.ZipFile(project / name, "w", how) as packed:
            packed.writestr("a", data)
    with zipfile.ZipFile(project / "0.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a", os.urandom(1000))
    raw = bytearray((project / "0.zip").read_bytes())
    raw[60:200] = bytes(140)
    (project / "0.zip").write_bytes(raw)
    with (project / "old.db").open("wb") as sparse:
        sparse.truncate(20_000_000)
    capsys.readouterr()
    assert run(["forget", "--by", "ann", "-y", "--verify", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    places = {Path(each["place"]).name: each["what"] for each in said["traces"]}
    assert places == dict.fromkeys(("0.zip", "2.zip", "3.zip", "old.db"), "not looked into: it is packed")


def test_a_run_that_goes_on_is_named_and_not_deleted(project: Path) -> None:
    with Tree.open(project) as tree:
        made = remember(tree, SECRET, who="ann")
        found = search("What opens the zebra vault?", tree=tree)
        tree.memory.execute("UPDATE run SET ended = NULL")
        forget(tree, made.node.id)
        assert wipe(tree, [SECRET]) == []
        assert ("run", found.run_id) in {("run", trace.what) for trace in traces(tree, [SECRET])}


def test_the_proof_finds_what_was_not_wiped(project: Path) -> None:
    with Tree.open(project) as tree:
        made = remember(tree, SECRET, who="ann")
        assert traces(tree, [SECRET]) == [], "what is still there is no trace"
        Blackboard(tree).add_requests({"request": SECRET})
        forget(tree, made.node.id)
        assert any(trace.place.endswith(": board") for trace in traces(tree, [SECRET]))


def test_what_others_said_too_stays_theirs_without_what_was_replaced() -> None:
    tree = Tree.create(":memory:")
    made = remember(tree, SECRET, who="ann", evidence=False)
    remember(tree, "The vault is empty.", update=made.node.id, who="bob", evidence=False)
    erased = forget_said(tree, Said(who="ann"))
    assert (erased.nodes, erased.left_to_others) == ([], [made.node.id])
    (kept,) = memories(tree)
    assert (kept.content, kept.provenance["who"]) == ("The vault is empty.", "bob")
    assert "earlier" not in kept.provenance
    assert traces(tree, erased.texts) == []


def _talk() -> Tree:
    tree = Tree.create(":memory:")
    log = ConversationLog(tree, "talk")
    log.say("ann", "The zebra vault opens at dawn, never tell me twice.", at="2026-01-05T09:00")
    log.say("bob", "Good to know. Never call me before nine.", at="2026-02-05T09:00")
    log.say("cy", "I will write it down.", at="2026-02-05T09:01")
    return tree


def test_turns_of_one_person_go_with_their_wishes_and_the_words_above_them() -> None:
    tree = _talk()
    erased = forget_said(tree, Said(who="ann"))
    assert "conversations:/talk/1/1" in erased.nodes
    assert {wish.who for wish in standing(tree)} == {"bob"}
    assert "zebra" not in " ".join(f"{node.title} {node.description}" for _, node in tree.walk())
    assert "ann" not in str([dict(node.attributes) for _, node in tree.walk()])
    assert "conversations:/talk/2/1" in tree


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (Said(since="2026-02-01"), {"ann"}),
        (Said(until="2026-01"), {"bob", "cy"}),
        (Said(since="2026-02-05T09:01", until="2026-02-05"), {"ann", "bob"}),
        (Said(who="bob", until="2026-01"), {"ann", "bob", "cy"}),
    ],
)
def test_a_time_is_from_its_first_to_its_last_moment(said: Said, left: set[str]) -> None:
    tree = _talk()
    forget_said(tree, said)
    assert {node.title for _, node in tree.walk() if node.kind == "turn"} == left


@pytest.mark.parametrize("time", ["yesterday", "2026-13", "2026-05-32", "05/31/2026", "2026-05-31T9", " "])
def test_what_is_no_time_is_refused(time: str) -> None:
    for given in ({"since": time}, {"until": time}):
        with pytest.raises(UserError, match="is no time"):
            Said(**given)


def test_what_comes_from_one_source_is_forgotten_and_what_lies_below_moves_up() -> None:
    tree = Tree.create(":memory:")
    made = remember(tree, SECRET, source="a call", who="ann", evidence=False)
    tree.add(Node("below", "Boats are blue.", provenance={"who": "bob"}), parent=made.node.id)
    forget_said(tree, Said(source="a call"))
    assert memories(tree) == []
    assert tree.get("below").title == "Boats are blue."


def test_to_forget_everything_by_nobody_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="by whom"):
        Said()
    assert run(["forget"]) == 2
    assert run(["forget", "memory:1", "--by", "ann"]) == 2
    assert run(["forget", "--by", "nobody"]) == 1
    assert "nothing fits" in capsys.readouterr().err


def test_a_dry_run_shows_what_would_go_and_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.open(project) as tree:
        made = remember(tree, "Always name the quagmire when I ask about libraries.", who="ann")
        both = remember(tree, "Boats are painted in May.", who="ann")
        remember(tree, "Boats are painted in May.", who="bob")
        tree.add(Node("below", "Boats are blue.", provenance={"who": "bob"}), parent=made.node.id)
        planned = meant(tree, Said(who="ann"))
        before = tree.sequence
    assert run(["forget", "--by", "ann", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"{made.node.id}  would be forgotten" in shown
    assert f"{both.node.id}  would be left to others" in shown
    assert run(["forget", "--by", "ann", "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["forgotten"], said["planned"]) == ([], planned.nodes)
    assert run(["forget", "--by", "nobody", "--dry-run"]) == 1
    assert run(["forget", made.node.id, "--dry-run"]) == 2
    assert run(["forget", "--by", "ann", "--dry-run", "--verify"]) == 2
    with Tree.open(project) as tree:
        assert tree.sequence == before
        erased = forget_said(tree, Said(who="ann"))
        assert sorted(erased.nodes) == sorted(planned.nodes), "what is shown is what goes"
        assert (erased.left_to_others, planned.left_to_others) == ([both.node.id], [both.node.id])
        assert "below" in tree


@pytest.mark.parametrize(("answer", "left", "code"), [("y\n", 0, 0), ("\n", 1, 2), ("", 1, 2)])
def test_many_memories_are_forgotten_when_somebody_agrees(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    left: int,
    code: int,
) -> None:
    with Tree.open(project) as tree:
        remember(tree, SECRET, who="ann")
    assert run(["forget", "--by", "ann"]) == 2, "nobody is at a terminal"
    assert "--dry-run" in capsys.readouterr().err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert run(["forget", "--by", "ann"]) == code
    shown = capsys.readouterr().err
    assert "would be forgotten" in shown and "forget 1 node for good?" in shown
    with Tree.open(project) as tree:
        assert len(memories(tree)) == left


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        *((table, (column,)) for table, column, _ in _COLUMNS),
        ("journal", ("body",)),
        ("call", ("arguments",)),
        ("call", ("result",)),
        ("item", ("data",)),
        ("item", ("sources",)),
    ],
)
def test_words_in_any_table_are_found_without_looking_at_files(table: str, columns: tuple[str, ...]) -> None:
    """The tree has no file, so that nothing else can find them."""
    tree = Tree.create(":memory:")
    assert traces(tree, [SECRET]) == []
    if table == "journal":
        _fill(tree, "run", {"number": 7, "id": "r7"})
    _fill(tree, table, {**dict.fromkeys(columns, f"said: {SECRET}"), "run": 7})
    found = traces(tree, [SECRET])
    place = "board" if table == "item" else table
    assert [trace.place for trace in found] == [f":memory:: {place}"]


def _fill(tree: Tree, table: str, values: dict[str, object]) -> None:
    """Put in a row with these values, and something where there must be something."""
    row: dict[str, object] = {}
    for _, name, kind, needed, default, key in tree.memory.rows(f"PRAGMA table_info({table})"):
        if name in values:
            row[name] = values[name]
        elif (needed and default is None) or (key and "INT" not in kind):
            row[name] = 1 if "INT" in kind or "REAL" in kind else "x"
    marks = ", ".join("?" * len(row))
    tree.memory.execute(f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def test_the_audit_says_where_a_memory_comes_from_and_what_it_replaced(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.open(project) as tree:
        made = remember(tree, "Always paint boats blue.", source="a call", who="ann")
        remember(tree, "Always paint boats red.", update=made.node.id, who="bob")
        found = audit(tree, made.node.id)
        assert [(each["who"], each["source"]) for each in found.said] == [("ann", "a call"), ("bob", None)]
        assert [each["text"] for each in found.replaced] == ["Always paint boats blue."]
        (wish,) = found.wishes
        assert (audit(tree, wish).stands_in, audit(tree, wish).holds) == (made.node.id, True)
        remember(tree, "Never paint boats red.", who="bob")
        later = next(each.node for each in standing(tree))
        assert audit(tree, wish).holds is False
        assert [each["text"] for each in audit(tree, later).replaced] == ["Always paint boats red."]
        assert audit(tree, "readme.md").stands_in.startswith("readme.md")
    assert run(["audit", made.node.id]) == 0
    shown = capsys.readouterr().out
    assert "said by ann on" in shown
    assert ": Always paint boats blue." in shown
    assert run(["audit", wish, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stands_in"] == made.node.id


def test_what_was_built_and_lies_under_a_memory_stays(project: Path) -> None:
    """Who made the memory may have moved it there, by an export, so that nobody can forget it."""
    with Tree.open(project) as tree:
        made = remember(tree, SECRET, who="ann").node
        built = next(node.id for _, node in tree.walk() if node.kind == "file")
        tree.move(built, made)
        parent = tree.parent(made)
        assert [each.id for each in forget(tree, made).nodes] == [made.id]
        assert made.id not in tree and tree.parent(built) == parent


def _telegram(*messages: tuple[int, str, str]) -> str:
    said = [
        {
            "id": number,
            "type": "message",
            "date_unixtime": str(1715900000 + 60 * number),
            "from": who,
            "text": text,
        }
        for number, who, text in messages
    ]
    return json.dumps({"name": "Yard", "type": "private_group", "id": 77, "messages": said})


_CHAT = (
    (1, "Ann", SECRET),
    (2, "Ann", "Please always name the quagmire when I ask about libraries."),
    (3, "Bob", "Boats are painted in May."),
)


def _said(tree: Tree) -> list[str]:
    return [node.description for _, node in tree.walk() if node.kind == "turn"]


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.json").write_text(_telegram(*_CHAT))
    with build_tree(tmp_path / "chat.json", out=tmp_path / "tree") as tree:
        assert search("What opens the zebra vault?", tree=tree).answer
    return tmp_path


def test_a_message_of_an_export_stays_away_when_the_export_is_taken_again(
    chat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.open(chat / "tree") as tree:
        note = remember(tree, "The vault is in the cellar.", under="chat.json/77/1").node
    assert run(["forget", "chat.json/77/1", "--tree", "tree", "--verify", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["forgotten"], said["undo"]) == (["chat.json/77/1"], {})
    assert [Path(each["place"]).name for each in said["traces"]] == ["chat.json"], "the export has it still"
    assert _holding(chat / "tree", "zebra") == []
    grown = _telegram(*_CHAT, (4, "Ann", "Berth 4 is free."))
    (chat / "chat.json").write_text(grown)
    with Tree.open(chat / "tree") as tree:
        assert tree.stale()
        tree.refresh()
        assert _said(tree) == [text for _, _, text in _CHAT[1:]] + ["Berth 4 is free."]
        assert tree.get(note.id).content == "The vault is in the cellar."
    (chat / "tree" / "index.db").unlink()
    with build_tree(chat / "chat.json", out=chat / "tree") as tree:
        assert len(_said(tree)) == 3, "nor when the index is made anew"


def test_what_one_person_said_in_exports_goes_with_the_wishes(
    chat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.open(chat / "tree") as tree:
        assert len(standing(tree)) == 1
    assert run(["forget", "--by", "Ann", "--tree", "tree", "--dry-run"]) == 0
    assert "chat.json/77/2  would be forgotten: Please always" in capsys.readouterr().out
    assert run(["forget", "--by", "Ann", "--until", "1999", "--yes", "--tree", "tree"]) == 1
    assert run(["forget", "--by", "Ann", "--from", "chat.json", "--yes", "--verify", "--tree", "tree"]) == 1
    assert "chat.json" in capsys.readouterr().err.split("still there: ")[1]
    with Tree.open(chat / "tree") as tree:
        assert (_said(tree), standing(tree)) == (["Boats are painted in May."], [])
        assert "Ann" not in json.dumps([node.description for _, node in tree.walk()])
    assert _holding(chat / "tree", "quagmire") == [], "neither as a message nor as a wish"


def test_a_conversation_is_left_out_of_several_exports(tmp_path: Path) -> None:
    exports = tmp_path / "exports"
    exports.mkdir()
    (exports / "b.json").write_text(_telegram(*_CHAT))
    with build_tree(f"chats:{exports}", out=tmp_path / "tree") as tree:
        forget(tree, "exports/77")
        assert _said(tree) == []
        # Another export of that name, which comes before it, has other messages.
        (exports / "a.json").write_text(_telegram((8, "Cy", "Tea at four."), (9, "Cy", "Or five.")))
        tree.refresh()
        assert _said(tree) == ["Tea at four.", "Or five."]


def test_what_is_left_out_of_an_export_that_is_away_goes_when_it_is_there_again(chat: Path) -> None:
    (chat / "chat.json").rename(chat / "away.json")
    with Tree.open(chat / "tree") as tree:
        with pytest.raises(UserError, match="left out as soon as its export can be read"):
            forget(tree, "chat.json/77/1")
        assert len(_said(tree)) == 3
        (chat / "away.json").rename(chat / "chat.json")
        tree.refresh()
        assert len(_said(tree)) == 2


def test_the_audit_names_the_export_and_the_wishes_of_a_message(
    chat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.open(chat / "tree") as tree:
        found = audit(tree, "chat.json/77/2")
        (said,) = found.said
        export = str(chat / "chat.json")
        assert (said["who"], said["at"][:10], said["export"]) == ("Ann", "2024-05-16", export)
        assert (found.stands_in, len(found.wishes)) == (export, 1)
        assert audit(tree, found.wishes[0]).stands_in == "chat.json/77/2"
        assert audit(tree, "chat.json/77/3").wishes == ()
    assert run(["audit", "chat.json/77/3", "--tree", "tree"]) == 0
    assert f"{export} says: “said by Bob on 2024-05-16" in capsys.readouterr().out
    assert run(["audit", "chat.json/77/3", "--tree", "tree", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["said"][0]["who"] == "Bob"


_TALK = (
    ("Ann", SECRET),
    ("Bob", "ok"),
    ("Ann", "ok"),
    ("Bob", "ok"),
    ("Ann", "Please always name the quagmire when I ask about libraries."),
)


def _json_talk(*said: tuple[str, str]) -> str:
    return json.dumps({"messages": [{"role": who, "content": text} for who, text in said]})


@pytest.fixture
def among_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "notes"
    (folder / "chats").mkdir(parents=True)
    (folder / "chats" / "talk.json").write_text(_json_talk(*_TALK))
    (folder / "boats.md").write_text("---\nwho: Ann\n---\n# Boats\nThe ketch is green.\n")
    monkeypatch.chdir(folder)
    with build_tree(folder, out=tmp_path / "tree") as tree:
        assert search("What opens the zebra vault?", tree=tree, sure=0.3).answer
        assert len(standing(tree)) == 1
    return tmp_path


def test_a_message_of_an_export_among_other_files_stays_away(
    among_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk, tree_at = among_files / "notes" / "chats" / "talk.json", str(among_files / "tree")
    with Tree.open(tree_at) as tree:
        note = remember(tree, "The vault is in the cellar.", under="chats/talk.json#1").node
    assert run(["forget", "chats/talk.json#1", "--tree", tree_at, "--verify"]) == 1
    assert f"still there: {talk}" in capsys.readouterr().err, "the file has it still"
    assert _holding(among_files / "tree", "zebra") == []
    with Tree.open(tree_at) as tree:
        assert not tree.stale()
        assert _said(tree) == [text for _, text in _TALK[1:]]
        assert tree.get(note.id).content == "The vault is in the cellar."
        forget(tree, "chats/talk.json#2")
        assert [node.id[-2:] for _, node in tree.walk() if node.kind == "turn"] == ["#3", "#4", "#5"], (
            "the others keep their numbers, and what is said alike is another message"
        )
    talk.write_text(_json_talk(*_TALK, ("Bob", "Berth 4 is free.")))
    (among_files / "tree" / "index.db").unlink()
    with build_tree(among_files / "notes", out=among_files / "tree") as tree:
        assert _said(tree) == [*(text for _, text in _TALK[2:]), "Berth 4 is free."]
        with pytest.raises(UserError, match="was built from its source"):
            forget(tree, "chats")
        forget(tree, "chats/talk.json")
        assert (_said(tree), standing(tree)) == ([], [])
        assert "nothing is left" in tree.get("chats/talk.json").description
        assert tree.get("chats/talk.json").source is None


@pytest.mark.parametrize("place", ["notes/chats", "notes/chats/talk.json"])
def test_the_proof_follows_no_link_that_is_in_the_place_of_an_export(
    among_files: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    elsewhere = among_files / "elsewhere"
    (among_files / place).rename(elsewhere)
    (among_files / place).symlink_to(elsewhere)
    with Tree.open(among_files / "tree") as tree:
        found = traces(tree, [SECRET], ["chats/talk.json"])
    export = among_files / "notes" / "chats" / "talk.json"
    assert Trace(str(export), "not looked into: a link leads elsewhere now") in found
    assert Trace(str(export), "") not in found


def test_the_proof_follows_no_link_that_is_in_the_place_of_a_source(chat: Path) -> None:
    (chat / "chat.json").rename(chat / "elsewhere.json")
    (chat / "chat.json").symlink_to("elsewhere.json")
    with Tree.open(chat / "tree") as tree:
        places = [trace for trace in traces(tree, [SECRET]) if trace.what.startswith("not looked into")]
    assert [trace.place for trace in places] == [str(chat / "chat.json")]


def test_what_a_person_said_among_other_files_goes_and_their_notes_are_named(
    among_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree_at = str(among_files / "tree")
    assert run(["forget", "--by", "Ann", "--dry-run", "--tree", tree_at]) == 0
    seen = capsys.readouterr()
    assert "chats/talk.json#5  would be forgotten: Please always" in seen.out
    assert "boats.md stays" in seen.err
    assert run(["forget", "--by", "Ann", "--from", "chats/talk.json", "--yes", "--tree", tree_at]) == 0
    with Tree.open(tree_at) as tree:
        assert (_said(tree), standing(tree)) == (["ok", "ok"], [])
        assert "Ann" not in tree.get("chats/talk.json").description
    capsys.readouterr()
    assert run(["forget", "--by", "Ann", "--yes", "--verify", "--tree", tree_at]) == 1
    seen = capsys.readouterr()
    assert "still there: boats.md" in seen.err
    assert "verified" not in seen.err
    assert run(["forget", "--by", "Zoe", "--yes", "--verify", "--tree", tree_at]) == 1
    assert "verified" not in capsys.readouterr().err, "nothing was forgotten, so nothing is proved"
