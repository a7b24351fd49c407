"""Exports of conversations as sources of a tree: taken again, cut off, put together, with clocks that run backwards."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build.plugins import conversation_tools
from metatree_memory_tools.conversations.tools import turns_around

from metatree import Tree, UserError, search
from metatree.node import Node
from metatree.notes.wishes import standing
from metatree.trees.source_types import SourceRef
from tests.unit.memory_tools.conversations import samples

pytestmark = pytest.mark.integration


def turns(tree: Tree) -> list[Node]:
    return [node for _, node in tree.walk() if node.kind == "turn"]


def said(tree: Tree) -> list[str]:
    return [node.description for node in turns(tree)]


def telegram(count: int, first: int = 1) -> dict[str, Any]:
    messages = [
        {
            "id": number,
            "type": "message",
            "date_unixtime": str(1_715_940_000 + number * 60),
            "from": f"P{number % 3}",
            "from_id": "user1",
            "text": f"message {number}",
        }
        for number in range(first, count + 1)
    ]
    return {"name": "Yard", "type": "private_group", "id": 5, "messages": messages}


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("chatgpt.zip", samples.packed({"conversations.json": samples.CHATGPT, "user.json": {}}), "ChatGPT"),
        ("claude.zip", samples.packed({"conversations.json": samples.CLAUDE}), "Claude"),
        ("slack.zip", samples.packed(samples.SLACK), "Slack"),
        ("discord.json", json.dumps(samples.DISCORD).encode(), "Discord"),
        ("result.json", json.dumps(samples.TELEGRAM_ALL).encode(), "Telegram"),
        ("matrix.json", json.dumps(samples.MATRIX).encode(), "Matrix"),
        ("WhatsApp Chat - Ann.zip", samples.packed({"_chat.txt": samples.WHATSAPP}), "WhatsApp"),
        ("mail.mbox", samples.MBOX.encode(), "mail"),
        ("standup.vtt", samples.VTT.encode(), "transcript"),
    ],
)  # fmt: skip
def test_an_export_of_each_kind_is_a_source(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with build_tree(file, out=tmp_path / "tree") as tree:
        (source,) = tree.sources()
        assert source.type == "chats"
        top = tree.get(source.mount)
        assert f"({kind})" in top.description and "note" not in top.attributes
        assert any("paint" in text for text in said(tree))
        for node in turns(tree):
            if reply := node.attributes.get("reply_to"):
                assert tree.get(reply).kind == "turn"
        before = tree.sequence
        tree.refresh()
        assert tree.sequence == before, "an export that did not change is not read again"


def test_an_export_that_has_grown_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(telegram(150)))
    with build_tree(file, out=tmp_path / "tree") as tree:
        assert len(turns(tree)) == 150
        before = tree.sequence
        file.write_text(json.dumps(telegram(210)))
        tree.refresh()
        assert said(tree) == [f"message {number}" for number in range(1, 211)]
        assert tree.parent("result.json/5/150") == "result.json/5/~2024-05-17.2"
        changed = {node_id for _, node_id, _ in tree.changes(before) if "/~" not in node_id}
        assert not {f"result.json/5/{number}" for number in range(1, 151)} & changed


def test_exports_in_a_folder_are_put_together_without_duplicates(tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "a later one.json").write_text(json.dumps(telegram(20, first=8)))
    with zipfile.ZipFile(folder / "earlier.zip", "w") as packed:
        packed.writestr("result.json", json.dumps(telegram(12)))
        packed.writestr("photos/p.jpg", b"\xff\xd8")
    (folder / "WhatsApp Chat with Ann.txt").write_text(
        "17/05/2024, 14:03 - Ann: ok\n17/05/2024, 14:03 - Ann: ok\n"
    )
    (folder / "WhatsApp Chat with Ann (1).txt").write_text(
        "17/05/2024, 14:03 - Ann: ok\n17/05/2024, 14:03 - Ann: ok\n17/05/2024, 14:03 - Ann: ok\n"
    )
    (folder / "cut.zip").write_bytes(samples.packed({"result.json": telegram(3)})[:-30])
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        texts = said(tree)
        assert [text for text in texts if text != "ok"] == [f"message {number}" for number in range(1, 21)]
        assert texts.count("ok") == 3, "what somebody says three times is said three times"
        top = tree.get("exports")
        assert "cut.zip" in top.attributes["note"] and "take the export again" in top.attributes["note"]


def conversations(tree: Tree) -> dict[str, list[str]]:
    """Return what is said in each conversation, by its title."""
    told = {node.id: node.title for _, node in tree.walk() if node.kind == "conversation"}
    return {
        title: [node.content or "" for node in turns(tree) if node.id.startswith(f"{chat}/")]
        for chat, title in told.items()
    }


@pytest.mark.parametrize("name", ["a.json", "z.json", "z.zip"])
@pytest.mark.parametrize("how", ["edits", "is of another", "is later", "has others"])
def test_an_export_of_somebody_else_changes_nothing_of_ones_own(tmp_path: Path, name: str, how: str) -> None:
    """With the ids of one's own chat and messages, whichever file comes first."""
    folder = tmp_path / "exports"
    folder.mkdir()
    own, other = telegram(5), telegram(5)
    (folder / "own.json").write_text(json.dumps(own))
    with build_tree(f"chats:{folder}", out=tmp_path / "before") as tree:
        ((_, said_by_own),) = conversations(tree).items()
    for number, message in enumerate(other["messages"]):
        message["text"] = f"forged {number}"
        if how == "is of another":
            message["from"] = "Mallory"
        elif how == "is later":
            message["date_unixtime"] = "1715990000"
        elif how == "has others":
            message["id"] += 100
    data = json.dumps(other).encode()
    (folder / name).write_bytes(samples.packed({"result.json": other}) if name == "z.zip" else data)
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        told = conversations(tree)
        assert sorted(len(each) for each in told.values()) == [5, 5]
        assert said_by_own in told.values(), "all of it, in its order, and nothing else"
        assert len(set(told)) == 2 and any(f"({name})" in title or "(own.json)" in title for title in told)
        assert {node.attributes.get("export") for node in turns(tree)} == {None}


def test_a_message_with_another_text_stays_beside_the_first_and_says_its_file(tmp_path: Path) -> None:
    """It was edited between two exports, or somebody else says so."""
    folder = tmp_path / "exports"
    folder.mkdir()
    later = telegram(7)
    later["messages"][2]["text"] = "forged"
    later["messages"][6]["reply_to_message_id"] = 3
    (folder / "a.json").write_text(json.dumps(telegram(5)))
    (folder / "b.json").write_text(json.dumps(later))
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        assert said(tree) == [
            *(f"message {n}" for n in (1, 2, 3)),
            "forged",
            *(f"message {n}" for n in (4, 5, 6, 7)),
        ]
        files = {node.description: node.attributes["export"] for node in turns(tree)}
        assert (files["message 3"], files["forged"], files["message 7"]) == ("a.json", "b.json", "b.json")
        last = turns(tree)[-1]
        assert tree.get(last.attributes["reply_to"]).description == "forged", (
            "what it answers in its own file"
        )


def test_channels_of_one_name_in_two_workspaces_stay_apart_and_parts_of_one_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    two = "two\nlines"
    for place, day, said_there in (("one", 17, "ours"), (two, 17, "theirs"), ("one", 18, "ours, later")):
        file = folder / place / "general" / f"2024-05-{day}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([{"ts": f"17159{day}000.0001", "user": "U", "text": said_there}]))
    for part in (1, 2):
        export = json.loads(json.dumps(samples.DISCORD))
        export["messages"] = [export["messages"][part - 1]]
        (folder / f"Guild [part {part}].json").write_text(json.dumps(export))
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        told = conversations(tree)
        assert [len(each) for title, each in told.items() if title.startswith("general")] == [2, 1]
        assert len(told) == 3 and "general (two lines)" in told


def test_conversations_of_two_formats_that_are_named_alike_in_every_way_end_no_build(tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    (folder / "Slack" / "general").mkdir(parents=True)
    for number, name in enumerate(("general", "Slack.general")):
        export = {**telegram(2), "id": name, "name": name}
        (folder / f"{number}.json").write_text(json.dumps(export))
    day = folder / "Slack" / "general" / "2024-05-17.json"
    day.write_text(json.dumps([{"ts": "1715917000.0001", "user": "U", "text": "hello"}]))
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        assert len(turns(tree)) == 5
        assert len([node for _, node in tree.walk() if node.kind == "conversation"]) == 3


def test_the_order_of_an_export_stays_where_clocks_run_backwards(tmp_path: Path) -> None:
    export = telegram(6)
    times = ["1715940000", "1715940300", "1715936700", "4102444800", "1715940600", "1715940660"]
    for message, time in zip(export["messages"], times, strict=True):
        message["date_unixtime"] = time
    file = tmp_path / "result.json"
    file.write_text(json.dumps(export))
    with build_tree(file, out=tmp_path / "tree") as tree:
        assert said(tree) == [f"message {number}" for number in range(1, 7)]
        assert len({tree.parent(node) for node in turns(tree)[:3]}) == 1, "an hour back is no pause"


def test_an_export_with_the_latest_first_is_turned_round(tmp_path: Path) -> None:
    export = json.loads(json.dumps(samples.DISCORD))
    first = export["messages"][0]
    export["messages"] = [
        {
            **first,
            "id": str(number),
            "timestamp": f"2024-05-17T10:{number // 2:02}:00+00:00",
            "content": f"message {number}",
        }
        for number in range(30, 0, -1)
    ]
    file = tmp_path / "channel.json"
    for cut in (None, -400):
        file.write_text(json.dumps(export)[:cut])
        with build_tree(file, out=tmp_path / f"tree{cut}") as tree:
            numbers = [int(text.split()[1]) for text in said(tree)]
            assert numbers == sorted(numbers) and numbers[-1] == 30
            assert len(numbers) == 30 if cut is None else 20 < len(numbers) < 30


def test_an_answer_comes_behind_what_it_answers(tmp_path: Path) -> None:
    letters = [
        ("3", "2", "Mon, 13 May 2024 10:00:00 +0000"),
        ("2", "1", "Fri, 17 May 2024 09:00:00 +0000"),
        ("1", "", "Fri, 17 May 2024 10:00:00 +0000"),
        ("4", "", "Fri, 17 May 2024 09:30:00 +0000"),
    ]
    text = "".join(
        f"From a@x.org Fri May 17 10:00:00 2024\nFrom: P{name} <a@x.org>\nSubject: Paint\nDate: {date}\n"
        f"Message-ID: <{name}@x>\n"
        + (f"In-Reply-To: <{reply}@x>\n" if reply else "")
        + f"\nletter {name}\n\n"
        for name, reply, date in letters
    )
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "all.mbox").write_text(text)
    with build_tree(tmp_path / "mail" / "all.mbox", out=tmp_path / "tree") as tree:
        assert [node.title for node in turns(tree)] == ["P4", "P1", "P2", "P3"]


def test_a_maildir_with_folders(tmp_path: Path) -> None:
    for path, number in (
        ("cur/1.M1:2,S", 1),
        ("new/2.M2", 2),
        (".Sent/cur/3.M3:2,S", 3),
        (".Sent/cur/4.M4:2,S", 1),
    ):
        file = tmp_path / "Maildir" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"From: P{number} <a@x.org>\nSubject: Paint\nMessage-ID: <{number}@x>\n\nletter {number}\n"
        )
    (tmp_path / "Maildir" / "dovecot.index").write_bytes(b"\0\1\2")
    with build_tree(f"chats:{tmp_path / 'Maildir'}", out=tmp_path / "tree") as tree:
        assert sorted(node.title for node in turns(tree)) == ["P1", "P2", "P3"]


def test_ten_thousand_speakers_and_many_conversations(tmp_path: Path) -> None:
    export = telegram(10_000)
    for message in export["messages"]:
        message["from"] = f"Person {message['id']}"
        message["date_unixtime"] = str(1_600_000_000 + message["id"] * 7_200)
    chats = [
        {
            "name": f"Chat {number}",
            "type": "personal_chat",
            "id": 100 + number,
            "messages": telegram(1)["messages"],
        }
        for number in range(150)
    ]
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"chats": {"list": [export, *chats]}}))
    with build_tree(file, out=tmp_path / "tree") as tree:
        chat = tree.get("result.json/5")
        assert "9,995 others" in chat.description and len(chat.description) < 300
        assert tree.ancestors("result.json/5/77")[1:-1] == [
            "result.json",
            "result.json/~2020",
            "result.json/~2020-09",
            "result.json/5",
            "result.json/5/~2020-09",
        ]
        widest = max(len(tree.children(node)) for _, node in tree.walk() if node.kind != "turn")
        assert widest <= 400
        assert "message 77" in search("What is in message 77?", tree=tree, sure=0.3).answer


def test_what_was_read_of_an_export_that_is_cut_off_is_there(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(telegram(50))[:-500])
    with build_tree(file, out=tmp_path / "tree") as tree:
        assert 40 < len(turns(tree)) < 50
        assert "ends in the middle" in tree.get("result.json").attributes["note"]
        file.write_text(json.dumps(telegram(60)))
        tree.refresh()
        assert len(turns(tree)) == 60
        assert "note" not in tree.get("result.json").attributes


def test_an_archive_that_is_cut_off_says_so_and_others_are_left_alone(tmp_path: Path) -> None:
    whole = samples.packed(samples.SLACK)
    (tmp_path / "slack.zip").write_bytes(whole[:200])
    (tmp_path / "other.zip").write_bytes(samples.packed({"readme.txt": "Hello"}))
    with build_tree(tmp_path / "slack.zip", tmp_path / "other.zip", out=tmp_path / "tree") as tree:
        assert "take the export again" in tree.get("slack.zip").attributes["note"]
        assert [source.type for source in tree.sources()] == ["chats", "file"]
        (tmp_path / "slack.zip").write_bytes(whole)
        tree.refresh()
        assert len(turns(tree)) == 4


def test_a_zip_that_is_a_bomb_is_cut_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metatree_memory_tools.conversations.formats.files._PLAIN_BYTES", 100_000)
    export = telegram(20)
    export["messages"][10]["text"] = "a" * 60_000_000
    file = tmp_path / "export.zip"
    file.write_bytes(samples.packed({"result.json": export}))
    with build_tree(file, out=tmp_path / "tree") as tree:
        assert len(turns(tree)) <= 10
        assert "zip bomb" in tree.get("export.zip").attributes["note"]


def test_secrets_in_messages_are_masked_and_wishes_are_of_a_file(tmp_path: Path) -> None:
    export = telegram(3)
    key = "AKIA" + "Z7Q2" * 4
    export["messages"][0]["text"] = f"Never call me before nine. The key is {key}"
    file = tmp_path / "result.json"
    file.write_text(json.dumps(export))
    with build_tree(file, out=tmp_path / "tree") as tree:
        shown = " ".join(f"{node} {tree.get(node.id).content}" for _, node in tree.walk())
        assert key[:12] not in shown
        (wish,) = standing(tree)
        assert (wish.text, wish.who, wish.source) == ("Never call me before nine.", "P1", "result.json/5/1")
        assert wish.file is not None, "a file may name anybody as its speaker"
        assert tree.content(wish.node) == wish.text
    assert key.encode() not in b"".join(
        path.read_bytes() for path in (tmp_path / "tree").iterdir() if path.is_file()
    )


def test_what_ids_are_made_of_is_masked_as_titles_are(tmp_path: Path) -> None:
    keys = ["AKIA" + each * 4 for each in ("Z7Q2", "Q2Z7", "X9V3")]
    rows = [
        {"conversation_id": key, "id": keys[2], "role": "user", "content": f"message {number}"}
        for number, key in enumerate(keys[:2])
    ]
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    slack = dict(samples.SLACK)
    (folder / "slack.zip").write_bytes(
        samples.packed({name.replace("general", keys[0]): value for name, value in slack.items()})
    )
    export = telegram(2)
    (folder / "result.json").write_text(json.dumps({**export, "name": keys[1], "id": keys[1]}))
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        assert len(turns(tree)) > 2
        ids = " ".join(node.id for _, node in tree.walk())
    kept = b"".join(path.read_bytes() for path in (tmp_path / "tree").iterdir() if path.is_file())
    assert not [key for key in keys if key in ids or key.encode() in kept]


def test_links_in_a_folder_of_exports_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps(telegram(3)))
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "result.json").symlink_to(tmp_path / "other.json")
    (folder / "a.json").write_text(json.dumps(samples.DISCORD))
    with build_tree(f"chats:{folder}", out=tmp_path / "tree") as tree:
        assert not any("message" in text for text in said(tree))


def test_a_turn_is_read_with_what_it_answers_however_long_ago(tmp_path: Path) -> None:
    export = telegram(120)
    export["messages"][119]["reply_to_message_id"] = 2
    file = tmp_path / "result.json"
    file.write_text(json.dumps(export))
    with build_tree(file, out=tmp_path / "tree") as tree:
        assert len(conversation_tools(tree)) == 1
        shown = turns_around.function(tree.get("result.json/5/120"), tree, before=1, after=1)
        assert [line.rpartition(": ")[2] for line in shown.split("\n")] == [
            "message 2",
            "message 119",
            "message 120",
        ]


def test_exports_among_other_files_of_a_folder_are_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "mail" / "cur").mkdir(parents=True)
    (folder / "readme.md").write_text("# Notes\n")
    (folder / "standup.srt").write_text(samples.SRT)
    (folder / "chat.txt").write_text("17/05/2024, 14:03 - Ann: ok\n17/05/2024, 14:04 - Bob: ok\n")
    (folder / "room.json").write_text(json.dumps(samples.MATRIX))
    (folder / "mail" / "cur" / "1.M1:2,S").write_bytes(
        b"From: Ann <a@x.org>\nSubject: Paint\nContent-Type: text/html\n\n<p>Epoxy&nbsp;it is</p>\n"
    )
    with build_tree(folder) as tree:
        found = {node.id.partition("#")[0]: node.title for node in reversed(turns(tree))}
        assert found == {
            "chat.txt": "Ann",
            "standup.srt": "Ann Lee",
            "room.json": "Ann",
            "mail/cur/1.M1:2,S": "Ann",
        }
        assert tree.content("mail/cur/1.M1:2,S#1").endswith("Epoxy it is")
        assert [node.description for node in turns(tree) if node.id.startswith("room.json")][:2] == [
            "Which paint for the ketch?",
            "Epoxy",
        ]


def test_what_an_export_has_no_more_leaves_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pages smaller than the export, and with wishes and sessions that go with it."""
    monkeypatch.setattr("metatree_memory_tools.build._source._PAGE", 7)
    export = telegram(40)
    export["messages"][35]["text"] = "Never call me before nine."
    file = tmp_path / "result.json"
    file.write_text(json.dumps(export))
    with build_tree(file, out=tmp_path / "tree") as tree:
        assert (len(turns(tree)), len(standing(tree))) == (40, 1)
        file.write_text(json.dumps(telegram(12)))
        tree.refresh()
        assert said(tree) == [f"message {number}" for number in range(1, 13)]
        assert standing(tree) == [] and "result.json/~wishes" not in tree


def test_exports_that_are_not_there_are_no_source(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n")
    exports = tmp_path / "exports"
    for location in (f"chats:{exports}", "chats:exports-of-nobody"):
        with pytest.raises(UserError, match="does not exist: give a file or a folder of chats"):
            build_tree(tmp_path / "notes", location, out=tmp_path / "tree")
    exports.mkdir()
    (exports / "chat.json").write_text(json.dumps(telegram(3)))
    build_tree(tmp_path / "notes", f"chats:{exports}", out=tmp_path / "tree").close()
    exports.rename(tmp_path / "away")
    with build_tree(tmp_path / "notes", *_kept(tmp_path / "tree"), out=tmp_path / "tree") as tree:
        assert len(turns(tree)) == 3, "one that was there before keeps what was read"


def _kept(place: Path) -> list[SourceRef]:
    with Tree.open(place) as tree:
        return [source for source in tree.sources() if source.type == "chats"]
