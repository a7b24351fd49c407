"""Conversations in all the forms that they come in."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_memory_tools.conversations import ConversationLog, Turn, file_type
from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations._exports import of_json, of_json_lines
from metatree_memory_tools.conversations._model import Conversations, in_sessions
from metatree_memory_tools.conversations._transcripts import looks_like_transcript, of_transcript
from metatree_memory_tools.conversations.file_type import ConversationFile, parsed
from metatree_memory_tools.conversations.tools import (
    remember_fact,
    turns_around,
    turns_by_date,
    turns_by_speaker,
)

from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.notes.notes import said_by
from metatree.trees.source_types import NotOfType, SourceFile
from metatree.trees.tree import Tree
from tests.profiles import examples


def turns(found: Conversations) -> list[tuple[str, str, str]]:
    return [(t.speaker, t.text, t.at) for c in found.conversations for s in c.sessions for t in s.turns]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56"),
        ("2024-05-17", "2024-05-17"),
        ("2024-05-17T10:00:00Z", "2024-05-17T10:00:00+00:00"),
        ("May 8th, 2023", "2023-05-08"),
        ("12/31/20, 9:41\u202fPM", "2020-12-31T21:41"),
        ("31.12.20, 21:41", "2020-12-31T21:41"),
        ("Tue, 05 Mar 2024 10:00:00 +0100", "2024-03-05T10:00:00+01:00"),
        ("1700000000", "2023-11-14T22:13:20+00:00"),
        ("", ""),
        ("tomorrow", ""),
        ("99/99/99, 9:41 PM", ""),
        ("Mon, 02 Mar 99999999999 10:00:00 +0000", ""),
    ],
)
def test_dates_are_understood(text: str, date: str) -> None:
    assert iso(text) == date


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans()))
def test_no_value_breaks_a_date(value: Any) -> None:
    assert isinstance(iso(value), str)


def test_lists_of_messages_are_conversations() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "look", "arguments": '{"at": 1}'}}],
        },
        {"role": "tool", "content": "a cat", "tool_call_id": "x"},
    ]
    wanted = [
        ("system", "Be kind.", ""),
        ("user", "Look\n[image_url]", ""),
        ("assistant", '[calls look with {"at": 1}]', ""),
        ("tool", "a cat", ""),
    ]
    assert turns(of_json(messages)) == wanted
    assert turns(of_json({"messages": messages})) == wanted
    conversations = of_json(
        [{"title": "One", "messages": messages}, {"title": "Two", "messages": messages[:2]}]
    )
    assert [c.title for c in conversations.conversations] == ["One", "Two"]
    assert turns(of_json_lines("\n".join(json.dumps({"messages": messages}) for _ in range(2)))) == wanted * 2
    assert turns(of_json_lines("\n".join(map(json.dumps, messages)) + "\nnot json\n")) == wanted


def test_the_export_of_a_chat_page_is_read_along_the_branch_that_was_shown() -> None:
    def entry(parent: str | None, role: str, text: str, at: float) -> dict[str, Any]:
        message = {
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "create_time": at,
        }
        return {"parent": parent, "children": [], "message": message}

    mapping = {
        "root": {"parent": None, "children": ["a"], "message": None},
        "a": entry("root", "user", "Hi", 1_700_000_000.5),
        "b": entry("a", "assistant", "Discarded", 1_700_000_001),
        "c": entry("a", "assistant", "Hello!", 1_700_000_002),
        "d": entry("c", "user", "Later", 1_700_100_000),
    }
    conversations = of_json([{"title": "Greeting", "mapping": mapping, "current_node": "d", "id": "x"}])
    (one,) = conversations.conversations
    assert (one.title, one.id) == ("Greeting", "x")
    assert [(s, t) for s, t, _ in turns(conversations)] == [
        ("user", "Hi"),
        ("assistant", "Hello!"),
        ("user", "Later"),
    ]
    assert [len(session.turns) for session in one.sessions] == [2, 1]  # a day lies between
    mapping["a"]["parent"] = "d"
    assert turns(of_json([{"mapping": mapping, "current_node": "d"}]))  # a circle ends


def test_sessions_with_numbers_and_dates_are_kept() -> None:
    data = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "Bye", "blip_caption": "a door"}],
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi"}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
    }
    conversations = of_json([data])
    assert turns(conversations) == [
        ("Ann", "Hi", "2023-05-08T13:56"),
        ("Bob", "Bye\n[shows an image: a door]", ""),
    ]
    assert [s.title for s in conversations.conversations[0].sessions] == ["Session 1", "Session 2"]
    lines = [
        {"conv": "c", "session": 1, "date": "2023-05-08", "speaker": "Ann", "text": "Hi", "caption": None},
        {"conv": "c", "session": 2, "date": "2023-05-08", "speaker": "Bob", "text": "Bye"},
        {"conv": "d", "session": 1, "date": "2023-05-09", "speaker": "Ann", "text": "Hm"},
    ]
    conversations = of_json_lines("\n".join(map(json.dumps, lines)))
    assert [(c.id, len(c.sessions)) for c in conversations.conversations] == [("c", 2), ("d", 1)]


def test_transcripts_have_speakers_times_and_lines_that_go_on() -> None:
    text = "8 May 2023\n[09:15] Ann: Hi Bob\nsecond line\n[9:20 PM] Bob: Hello: you?\nAnn: https://x.org\nBob: ok\n"
    assert looks_like_transcript(text)
    assert turns(of_transcript(text)) == [
        ("Ann", "Hi Bob\nsecond line", "2023-05-08T09:15"),
        ("Bob", "Hello: you?", "2023-05-08T21:20"),
        ("Ann", "https://x.org", "2023-05-08"),
        ("Bob", "ok", "2023-05-08"),
    ]
    phone = "12/31/20, 9:41\u202fPM - Ann: Happy new year\n12/31/20, 9:42 PM - Bob: You too\n"
    assert turns(of_transcript(phone))[0] == ("Ann", "Happy new year", "2020-12-31T21:41")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: x\nversion: 1\nauthor: y\n",
        "Note: this.\nWarning: that.\nNote: more.\n" + "A line of prose.\n" * 20,
        "http://a.b\nhttp://c.d\n" * 5,
        "Usage: x\n\nOptions:\n  -a: one\n  -b: two\n",
    ],
)
def test_other_texts_are_no_transcripts(text: str) -> None:
    assert not looks_like_transcript(text)


def test_letters_become_conversations_by_subject() -> None:
    box = (
        b"From ann@x.org Mon Jan  1 10:00:00 2024\r\nFrom: Ann A. <ann@x.org>\r\nSubject: Heating\r\n"
        b"Date: Mon, 01 Jan 2024 10:00:00 +0000\r\n\r\nIt is cold.\r\n>From here.\r\n\r\n"
        b"From bob@x.org Mon Jan  1 11:00:00 2024\nFrom: bob@x.org\nSubject: Re: AW: Heating\n"
        b"Date: Mon, 01 Jan 2024 11:00:00 +0000\nContent-Type: text/plain; charset=iso-8859-1\n\nGr\xfcezi\n"
        b"> It is cold.\n"
    )
    conversations = parsed(SourceFile("all.mbox", box))
    assert [c.title for c in conversations.conversations] == ["Heating"]
    assert turns(conversations) == [
        ("Ann A.", "Heating\nIt is cold.\nFrom here.", "2024-01-01T10:00:00+00:00"),
        ("bob@x.org", "Re: AW: Heating\nGrüezi", "2024-01-01T11:00:00+00:00"),
    ]
    assert parsed(SourceFile("a.eml", b"\xff\xfe\0")).conversations


def test_a_long_silence_and_many_turns_begin_sessions() -> None:
    dated_turns = [Turn("Ann", "x", f"2024-01-0{day}T10:00") for day in (1, 1, 2)]
    assert [len(session.turns) for session in in_sessions(dated_turns)] == [2, 1]
    assert [len(session.turns) for session in in_sessions([Turn("Ann", "x")] * 250)] == [100, 100, 50]


@settings(max_examples=examples(60))
@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text()),
        lambda inner: st.one_of(
            st.lists(inner),
            st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "messages",
                        "mapping",
                        "parent",
                        "current_node",
                        "session_1",
                        "text",
                        "parts",
                        "sessions",
                    ]
                ),
                inner,
            ),
        ),
    )
)
def test_no_json_breaks_the_reader(data: Any) -> None:
    for conversations in (of_json(data), of_json_lines(json.dumps(data))):
        assert isinstance(conversations, type(of_json([]))), "whatever comes, it is conversations or none"


@settings(max_examples=examples(60))
@given(st.binary(max_size=200), st.sampled_from(["a.json", "a.jsonl", "a.txt", "a.eml", "a.mbox"]))
def test_no_bytes_break_the_type(data: bytes, name: str) -> None:
    kind, file = ConversationFile(), SourceFile(name, data)
    kind.recognises(name, data)
    with suppress(NotOfType):
        outline = kind.outline(file)
        assert all(part.title and part.start_line <= part.end_line for part in outline.parts)


def test_a_file_that_only_looks_like_one_is_none() -> None:
    kind = ConversationFile()
    file = SourceFile("a.json", b'{"role": "admin", "content": 5}')
    assert kind.recognises(file.path, file.data)
    assert not parsed(file).conversations
    with pytest.raises(NotOfType):
        kind.outline(file)


def logged() -> ConversationLog:
    log = ConversationLog(Tree.create(":memory:"), "home")
    log.extend(
        [
            Turn("Ann", "Where is the key?", "2024-01-01T10:00"),
            Turn("Bob", "Under the red pot.", "2024-01-01T10:01"),
            Turn("Ann", "Thanks!", "2024-01-01T10:02"),
            Turn("Ann", "The key is gone.", "2024-03-01T10:00"),
        ]
    )
    return log


def test_an_agent_notes_its_own_turns() -> None:
    log = logged()
    tree = log.tree
    assert [node.title for node in tree.children(log.id)] == [
        "Session 1, 2024-01-01 10:00",
        "Session 2, 2024-03-01 10:00",
    ]
    assert tree.get("conversations:/home/1").description == "Ann, Bob — Where is the key?"
    assert tree.get("conversations:/home/1/2").provenance["who"] == "Bob"
    log.new_session()
    assert log.say("Bob", "Look again.", at="2024-03-01T10:05") == "conversations:/home/3/1"
    again = ConversationLog(tree, "home")
    assert again.say("Ann", "Found!", at="2024-03-01T10:06") == "conversations:/home/3/2"
    assert again.say("Ann", "x", at="2024-03-01T23:06") == "conversations:/home/4/1"


@pytest.mark.parametrize(
    ("speaker", "text", "at"), [("", "x", None), ("Ann", " ", None), ("Ann", "x", "someday")]
)
def test_a_turn_that_says_nothing_is_refused(speaker: str, text: str, at: str | None) -> None:
    log = ConversationLog(Tree.create(":memory:"), "home")
    with pytest.raises(UserError):
        log.say(speaker, text, at=at)
    assert len(log.tree) == 1
    with pytest.raises(UserError):
        ConversationLog(log.tree, "../x")


def node(tree: Tree, node_id: str) -> Node:
    return Node(**{name: getattr(tree.get(node_id), name) for name in Node.__slots__})


def test_the_tools_of_a_conversation() -> None:
    tree = logged().tree
    bob = node(tree, "conversations:/home/1/2")
    around = turns_around.function(node=bob, tree=tree, before=1, after=0)
    assert (
        around
        == "[1 January 2024 10:00] Ann: Where is the key?\n[1 January 2024 10:01] Bob: Under the red pot."
    )
    assert "red pot" in turns_by_speaker.function(node=bob, tree=tree, speaker="bob")
    assert "gone" in turns_by_speaker.function(node=bob, tree=tree, speaker="Ann", words="gone")
    assert "Where" not in turns_by_speaker.function(node=bob, tree=tree, speaker="Ann", words="gone")
    with pytest.raises(UserError, match="the speakers are Ann, Bob"):
        turns_by_speaker.function(node=bob, tree=tree, speaker="Eve")
    top = node(tree, "conversations:/home")
    assert (
        turns_by_date.function(node=top, tree=tree, date="2024-03")
        == "[1 March 2024 10:00] Ann: The key is gone."
    )
    assert (
        turns_by_date.function(node=top, tree=tree, date="1 January 2024", until="2024-02-01").count("\n")
        == 2
    )
    with pytest.raises(UserError, match="from 2024-01-01 to 2024-03-01"):
        turns_by_date.function(node=top, tree=tree, date="1999")
    with pytest.raises(UserError):
        turns_by_date.function(node=top, tree=tree, date="soon")
    fact = remember_fact.function(node=bob, tree=tree, fact="The key is  under the red pot.")
    assert fact.description == "A fact, said by Bob on 1 January 2024 10:01"
    assert fact.provenance == {"from": bob.id, "who": "Bob", "at": "2024-01-01T10:01"}
    assert "“[1 January 2024 10:01] Bob: Under the red pot.”" in fact.content
    of_file = replace(bob, source=Source(type="conversation", path="chats/home.json"))
    fact = remember_fact.function(node=of_file, tree=tree, fact="The key is  under the red pot.")
    assert fact.description == "A fact, said by Bob in chats/home.json on 1 January 2024 10:01"
    assert fact.provenance == {"from": bob.id}, "a file may name anybody"
    assert said_by(fact) == ""


def test_a_file_that_is_read_again_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"[01/02/24, 10:00:00] Ann: Tea\n[01/02/24, 10:00:05] Bob: Yes\n"
    counted: list[str] = []

    def counting(file: SourceFile) -> Conversations:
        counted.append(file.path)
        return parsed(file)

    monkeypatch.setattr(file_type, "parsed", counting)
    kind = ConversationFile()
    place = Source(type="conversation", path="a.txt", start_line=2)
    first = [kind.content(SourceFile("a.txt", bytes(bytearray(text))), place) for _ in range(3)]
    assert first == [first[0]] * 3 and "Yes" in first[0]
    assert counted == ["a.txt"]
    assert "No" in kind.content(SourceFile("a.txt", text.replace(b"Yes", b"No.")), place)
