"""Exports of conversations in the formats that programs give, brought into one shape."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_memory_tools.conversations.formats._json_stream import values
from metatree_memory_tools.conversations.formats.files import FORMATS, format_of
from metatree_memory_tools.conversations.formats.mail import letter_of
from metatree_memory_tools.conversations.formats.message import ChatMessage, CutOff, ExportFile, text_of
from metatree_memory_tools.conversations.formats.texts import text_of_html

from tests.profiles import examples
from tests.unit.memory_tools.conversations import samples


def file_of(name: str, content: Any, others: dict[str, Any] | None = None) -> ExportFile:
    data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
    data = json.dumps(content, ensure_ascii=False).encode() if data is None else data
    beside = {path: file_of(path, other) for path, other in (others or {}).items()}
    return ExportFile(name, lambda: io.BytesIO(data), beside.get)


def read(file: ExportFile, wanted: str) -> list[ChatMessage]:
    known = format_of(file)
    assert known is not None and known.name == wanted
    return list(known.messages(file))


def brief(messages: list[ChatMessage]) -> list[tuple[str, str, str, str]]:
    return [(each.author, each.text, each.at, each.reply) for each in messages]


def test_chatgpt_gives_the_branch_that_was_shown_last() -> None:
    found = read(file_of("conversations.json", samples.CHATGPT), "ChatGPT")
    assert brief(found) == [
        ("user", "Which paint for the ketch?\n[attached: ketch.png]", "2024-05-17T09:59:59+00:00", ""),
        ("assistant", "Epoxy, two coats.", "2024-05-17T10:00:01+00:00", "u1"),
    ]
    assert {(each.chat, each.title) for each in found} == {("6646-aaaa", "Boat paint")}


def test_claude_gives_texts_that_were_attached_too() -> None:
    found = read(file_of("x.json", samples.CLAUDE), "Claude")
    assert brief(found) == [
        (
            "human",
            "Which paint for the ketch?\n[attached: list.txt]\nwhite lead",
            "2024-05-17T10:00:00+00:00",
            "",
        ),
        ("assistant", "Epoxy, two coats.", "2024-05-17T10:00:20+00:00", "m1"),
    ]


def test_slack_calls_conversations_without_a_name_by_who_talks_there() -> None:
    said = [{"type": "message", "user": "U1", "text": "Hello", "ts": "1715939999.000100"}]
    lists: dict[str, Any] = {
        "users.json": samples.SLACK["users.json"],
        "dms.json": [{"id": "D024BE91L", "members": ["U1", "U2"]}, {"id": 5}],
        "mpims.json": [{"id": "G1", "name": "mpdm-ann--bob--cy-1", "members": ["U1", "U2", "U9"]}],
    }
    titles = {
        "D024BE91L": "Ann Lee, bob",
        "mpdm-ann--bob--cy-1": "Ann Lee, bob, U9",
        "D77": "D77",
    }
    for folder, title in titles.items():
        (found,) = read(file_of(f"{folder}/2024-05-17.json", said, lists), "Slack")
        assert (found.chat, found.title, found.author) == (folder, title, "Ann Lee")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("conversations.json", samples.CHATGPT, "ChatGPT"),
        ("conversations.json", samples.CLAUDE, "Claude"),
        ("chat.txt", "17/05/2024, 14:03 - Jürg: Grüße\n17/05/2024, 14:04 - Ann: Hi\n", "WhatsApp"),
    ],
)
def test_an_export_that_an_editor_kept_in_another_encoding_is_known(
    name: str, content: Any, kind: str, codec: str
) -> None:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    assert brief(read(file_of(name, text.encode(codec)), kind)) == brief(read(file_of(name, text), kind))


def test_slack_names_people_and_puts_threads_in_their_time() -> None:
    day = "yard/2024-05-17.json"
    found = read(file_of(day, samples.SLACK[day], samples.SLACK), "Slack")
    assert brief(found) == [
        ("Ann Lee", "Is @bob in #dock? See the list (https://x.org/a)", "2024-05-17T09:59:59+00:00", ""),
        ("Ann Lee", "Fine paint", "2024-05-17T10:00:00+00:00", ""),
        ("bob", "Yes & no\n[attached: plan.pdf]", "2024-05-17T10:01:40+00:00", "1715939999.000100"),
    ]
    late = "yard/2024-05-18.json"
    assert brief(read(file_of(late, samples.SLACK[late]), "Slack"))[0][:2] == ("Cy", "Late")
    assert {each.chat for each in found} == {"yard"}


def test_discord() -> None:
    found = read(file_of("any name", samples.DISCORD), "Discord")
    assert brief(found) == [
        ("Ann", "Which paint for the ketch?\n[attached: a.png]", "2024-05-17T10:00:00+00:00", ""),
        ("bob", "Epoxy.\nEpoxy\nA resin", "2024-05-17T10:01:00+00:00", "901"),
    ]
    assert {(each.chat, each.title) for each in found} == {("22", "Yard / paint")}


@pytest.mark.parametrize("export", [samples.TELEGRAM_CHAT, samples.TELEGRAM_ALL])
def test_telegram_of_one_chat_and_of_all(export: dict[str, Any]) -> None:
    found = read(file_of("result.json", export), "Telegram")
    assert brief(found)[:4] == [
        ("Ann", "[pin_message]", "2024-05-17T10:00:00+00:00", ""),
        ("Ann", "See x.org on paint", "2024-05-17T10:01:00+00:00", ""),
        ("Bob", "Thanks", "2024-05-17T10:02:00+00:00", "2"),
        ("user9", "[sticker] 👍", "2024-05-17T12:03", ""),
    ]
    chats = [("4711", "Ann")] * 4 + [("1", "saved_messages")] * (len(found) - 4)
    assert [(each.chat, each.title) for each in found] == chats


def test_matrix_gives_edits_under_the_name_of_what_they_change() -> None:
    found = read(file_of("export.json", samples.MATRIX), "Matrix")
    assert [(each.id, each.author, each.text, each.reply) for each in found] == [
        ("$1", "Ann", "Which paint?", ""),
        ("$2", "@bob:example.org", "Epoxy", "$1"),
        ("$1", "Ann", "Which paint for the ketch?", ""),
        ("$4", "@cy:example.org", "[cannot be read: it is encrypted]", ""),
    ]


_PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIEow\n-----END RSA PRIVATE KEY-----"


def test_a_key_that_is_quoted_stays_in_one_piece() -> None:
    """What is answered goes; what somebody quotes by themselves, with one sign before its first line, does not."""
    event = {**samples.MATRIX["messages"][1], "event_id": "$9"}
    said = {"msgtype": "m.text", "format": "org.matrix.custom.html", "body": f"> {_PEM}"}
    answer = {**said, "body": "> * <@ann:example.org> Which paint?\n> And why?\n\nEpoxy"}
    lines = _PEM.replace("\n", "\n> ")
    keys = [f"> <@ann:example.org> {key}\n\nThat one" for key in (_PEM, lines)]
    contents = [said, answer, *({**said, "body": key} for key in keys)]
    export = {**samples.MATRIX, "messages": [{**event, "content": content} for content in contents]}
    found = read(file_of("export.json", export), "Matrix")
    assert [each.text for each in found] == [f"> {_PEM}", "Epoxy", *keys]


def test_a_key_that_a_letter_quotes_stays_in_one_piece() -> None:
    """A comment that is mailed as it was typed has `>` before its first line alone."""
    letter = f"From: Ann <ann@example.org>\nSubject: Key\n\nHello,\n\n> {_PEM}\n\nIs it ours?\n"
    assert _PEM in letter_of(letter.encode()).text
    said = letter_of(letter.replace(_PEM, "the key").encode()).text
    assert "the key" not in said and "Is it ours?" in said


def test_a_key_in_a_caption_has_no_speaker_of_its_own() -> None:
    caption = "1\n00:00:01,000 --> 00:00:02,000\nAnn: Hello\n\n2\n00:00:03,000 --> 00:00:04,000\n"
    found = read(file_of("standup.srt", f"{caption}{_PEM}\n"), "transcript")
    assert [each.text for each in found][-1].endswith(" ".join(_PEM.split("\n")))
    rolling = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n\n00:02.000 --> 00:03.000\n{}\n"
    found = read(file_of("a.vtt", rolling.format(_PEM.split("\n")[0], _PEM)), "transcript")
    assert " ".join(_PEM.split("\n")) in found[-1].text


def test_transcripts_of_meetings_join_what_one_speaker_says() -> None:
    found = read(file_of("GMT20240517-140322_Recording.transcript.vtt", samples.VTT), "transcript")
    assert brief(found) == [
        ("Ann Lee", "Shall we paint & launch on Monday?", "2024-05-17T14:03:23", ""),
        ("Bob", "Yes.", "2024-05-17T14:03:29", ""),
    ]
    found = read(file_of("standup.srt", samples.SRT), "transcript")
    assert [(each.author, each.text, each.at) for each in found] == [
        ("Ann Lee", "(0:00:01) Shall we paint?", ""),
        ("Bob", "(1:00:04) Yes. On Monday.", ""),
    ]


def test_captions_that_roll_are_said_once() -> None:
    rolling = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nwe paint\n\n00:02.000 --> 00:03.000\nwe paint\n"
        "<00:02.100><c>the</c> ketch\n\n00:03.000 --> 00:04.000\nthe ketch\nin May\n"
    )
    assert [each.text for each in read(file_of("a.vtt", rolling), "transcript")] == [
        "(0:00:01) we paint the ketch in May"
    ]


FIRST, LAST = "2024-05-17T14:03", "2024-05-18T09:00"
MARCH = ["2024-03-05T10:00", "2024-03-06T10:00", "2024-04-01T10:00"]


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (["[17.05.24, 14:03:22] Ann: Hi", "[18.05.24, 09:00:00] Bob: Yo"], [f"{FIRST}:22", LAST]),
        (["17/05/2024, 14:03 - Ann: Hi", "18/05/2024, 09:00 - Bob: Yo"], [FIRST, LAST]),
        (["5/17/24, 2:03\u202fPM - Ann: Hi", "5/18/24, 9:00\u202fAM - Bob: Yo"], [FIRST, LAST]),
        (["17/5/2024, 2:03 p. m. - Ann: Hi", "18/5/2024, 9:00 a. m. - Bob: Yo"], [FIRST, LAST]),
        (["17/05/24, 2:03 pm - Ann: Hi", "18/05/24, 9:00 am - Bob: Yo"], [FIRST, LAST]),
        (["2024-05-17 14:03 - Ann: Hi", "2024-05-18 09:00 - Bob: Yo"], [FIRST, LAST]),
        (["2024. 5. 17. 오후 2:03 - Ann: Hi", "2024. 5. 18. 오전 9:00 - Bob: Yo"], [FIRST, LAST]),
        (["[2024/05/17 午後2:03:22] Ann: Hi", "[2024/05/18 午前9:00:00] Bob: Yo"], [f"{FIRST}:22", LAST]),
        (["17.5.2024 klo 14.03 - Ann: Hi", "18.5.2024 klo 9.00 - Bob: Yo"], [FIRST, LAST]),
        (["\u200f[١٧/٥/٢٠٢٤, ١٤:٠٣:٢٢] Ann: Hi", "[١٨/٥/٢٠٢٤, ٠٩:٠٠:٠٠] Bob: Yo"], [f"{FIRST}:22", LAST]),
        (["17/05/2567, 14:03 - Ann: Hi", "18/05/2567, 09:00 - Bob: Yo"], [FIRST, LAST]),
        # No number above twelve: the order in which time goes on.
        (["5/3/24, 10:00 - Ann: Hi", "6/3/24, 10:00 - Bob: Yo", "1/4/24, 10:00 - Ann: Well"], MARCH),
        (["3/5/24, 10:00 - Ann: Hi", "3/6/24, 10:00 - Bob: Yo", "4/1/24, 10:00 - Ann: Well"], MARCH),
    ],
)
def test_whatsapp_of_many_regions(lines: list[str], times: list[str]) -> None:
    found = read(file_of("WhatsApp Chat with Ann.txt", "\ufeff" + "\n".join(lines) + "\n"), "WhatsApp")
    assert [each.at for each in found] == times
    assert [each.author for each in found][:2] == ["Ann", "Bob"]
    assert {each.title for each in found} == {"Ann"}


def test_whatsapp_lines_go_on_and_the_service_is_nobody() -> None:
    text = (
        "17/05/2024, 14:00 - Messages and calls are end-to-end encrypted. Not even WhatsApp can read them.\n"
        "17/05/2024, 14:00 - Bob created group Boats\n"
        "17/05/2024, 14:03 - \u202a+41 79 000 00 00\u202c: First\nsecond: line\n\nfourth\n"
        "17/05/2024, 14:04 - ~ Bob: \u200e<Media omitted>\n"
    )
    found = read(file_of("_chat.txt", text), "WhatsApp")
    assert [(each.author, each.text) for each in found] == [
        ("unknown", "Bob created group Boats"),
        ("+41 79 000 00 00", "First\nsecond: line\n\nfourth"),
        ("Bob", "<Media omitted>"),
    ]


def test_mail_reads_pages_and_encodings() -> None:
    found = read(file_of("All mail", samples.MBOX), "mail")
    assert brief(found) == [
        (
            "Ann Lee",
            "Paint\nWhich paint for the ketch?\nFrom what I hear, epoxy.",
            "2024-05-17T10:00:00+00:00",
            "",
        ),
        ("Bob", "Re: Paint\nEpoxy & über all\ntwo coats", "2024-05-17T09:00:00+00:00", "<1@example.org>"),
    ]
    assert len({each.chat for each in found}) == 1
    assert {each.title for each in found} == {"Paint"}


@pytest.mark.parametrize(
    "letter",
    [
        b"From: a@x.org\nSubject: S\nContent-Type: text/plain; charset=no-such\n\ncaf\xe9 paint\n",
        b"From: a@x.org\nSubject: S\nContent-Type: text/plain; charset=utf-8\n\ncaf\xe9 paint\n",
        b"From: a@x.org\nSubject: S\n\ncaf\xc3\xa9 paint\n",
    ],
)
def test_mail_in_other_encodings_than_it_says(letter: bytes) -> None:
    (found,) = read(file_of("cur/1.M1:2,S", letter), "mail")
    assert found.text == "S\ncafé paint"


def test_files_that_are_no_exports_are_left_to_others() -> None:
    for name, content in {
        "package.json": {"name": "x", "messages": {"a": "b"}, "type": "module"},
        "a.json": [{"role": "user", "content": "Hi"}],
        "notes.txt": "Buy: milk\nCall: Bob\n",
        "diary.txt": "17/05/2024\nWent to the yard.\n18/05/2024\nRain.\n",
        "readme": "Subject: of this text\n\nis paint",
        "2024-05-17.json": [{"ts": 3}],
        "numbers.txt": "1\n2\n3\n",
    }.items():
        assert format_of(file_of(name, content)) is None, name


def test_json_comes_as_a_stream_whatever_stands_where() -> None:
    data = (
        b'\xef\xbb\xbf {"a": [1, {"b": "\\u00e9"}], "messages": [ {"x": [1]} , 12, "caf\xe9" ], "end": null }'
    )
    found = list(values(io.BytesIO(data), lambda path: path in ((), ("messages",))))
    assert found == [
        (("a",), [1, {"b": "é"}]),
        (("messages", "*"), {"x": [1]}),
        (("messages", "*"), 12),
        (("messages", "*"), "café"),
        (("end",), None),
    ]
    wide = json.dumps([{"x": "é"}]).encode("utf-16")
    assert [value for _, value in values(io.BytesIO(wide), lambda path: path == ())] == [{"x": "é"}]


def test_a_value_of_millions_of_lists_is_not_read() -> None:
    """They take 25 times what they are written in; zipped, 20 million of them are 58 kB."""
    found = values(io.BytesIO(b'[{"a": 1}, {"x": [' + b"[]," * 1_600_000 + b"[]]}]"), lambda path: path == ())
    assert next(found) == (("*",), {"a": 1})
    with pytest.raises(CutOff, match="parts"):
        next(found)


def test_names_in_lists_of_slack_are_bounded() -> None:
    said = [{"type": "message", "user": "U1", "text": "Hello", "ts": "1715939999.000100"}]
    users = [{"id": "U1", "name": "ann" * 10_000}, {"id": "U" * 10_000, "name": "bob"}]
    (found,) = read(file_of("yard/2024-05-17.json", said, {"users.json": users}), "Slack")
    assert found.author == ("ann" * 10_000)[:200]


class Slow(io.BytesIO):
    """Gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(3, size or 3))


JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@settings(max_examples=examples(60))
@given(st.lists(JSON))
def test_a_stream_gives_what_the_whole_holds(items: list[Any]) -> None:
    for ascii_only in (True, False):
        data = json.dumps(items, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if b"\xed" in data:  # halves of surrogate pairs are no UTF-8
            continue
        assert [value for _, value in values(Slow(data), lambda path: path == ())] == items


def _cut(name: str) -> Iterator[tuple[ExportFile, bytes]]:
    whole = {
        "conversations.json": samples.CHATGPT * 3,
        "claude.json": samples.CLAUDE * 3,
        "channel.json": samples.DISCORD,
        "result.json": samples.TELEGRAM_CHAT,
        "export.json": samples.MATRIX,
    }[name]
    data = json.dumps(whole).encode()
    for end in range(len(data) - 1, len(data) // 3, -max(1, len(data) // 40)):
        yield file_of(name, data[:end]), data[:end]


@pytest.mark.parametrize(
    "name", ["conversations.json", "claude.json", "channel.json", "result.json", "export.json"]
)
def test_what_comes_before_a_cut_is_read_and_the_cut_is_said(name: str) -> None:
    counts = []
    for file, _ in _cut(name):
        known = format_of(file)
        assert known is not None
        count = 0
        with pytest.raises(CutOff, match="ends in the middle"):
            for _ in known.messages(file):
                count += 1
        counts.append(count)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


NAMES = ("a.txt", "a.vtt", "a.eml", "a.mbox", "cur/1", "x/2024-01-01.json", "result.json")
HEADS = (
    b"",
    b"WEBVTT\n",
    b"From a 1\nFrom: b\n\n",
    b"[1.1.20, 10:00:00] A: b\n",
    b'[{"mapping": {',
    b'{"room_name": "a", "event_id": [',
)


@settings(max_examples=examples(150))
@given(st.binary(max_size=300), st.sampled_from(NAMES), st.sampled_from(HEADS))
def test_no_bytes_break_a_format(data: bytes, name: str, head: bytes) -> None:
    file = file_of(name, head + data)
    for known in FORMATS:
        try:
            if known.recognises(file):
                assert all(isinstance(each, ChatMessage) for each in known.messages(file))
        except CutOff:
            pass


def test_encodings_may_be_mixed_in_one_file() -> None:
    assert text_of("naïve — ".encode() + "café".encode("cp1252") + " naïve".encode()) == "naïve — café naïve"


def test_pages_are_read_without_what_is_not_seen() -> None:
    hidden = "<!DOCTYPE x><head><title>T</title></head><script>var a = '<p>no</p>';</script>"
    html = hidden + "<div>One<br>two<![CDATA[x]]></div>"
    assert text_of_html(html).split("\n")[:2] == ["One", "two"]
    assert text_of_html("<p>" * 5000 + "deep") == "deep"
    assert (
        text_of_html("a < b <b>and</b> 1<2 <!-- <p>no</p> -->&lt;p&gt;<SCRIPT>no</script >yes")
        == "a < b and 1<2 <p>yes"
    )
    assert text_of_html("<head>open<p>seen</p><style>no") == "open\nseen\nno"


@pytest.mark.parametrize("page", ["<p", "<!--", "<![CDATA[", "<a b='", "</", "<script>", "&", "<style"])
def test_pages_that_nothing_closes_take_no_time(page: str) -> None:
    """The square of it would be hours."""
    assert len(text_of_html(page * 400_000)) < 4_000_000


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: text/plain; charset=" + '"' * 500_000,
        "Content-Type: text/plain; " + "a=b; " * 100_000,
        "Content-Type: text/plain; " + 'x*0*="a";' * 100_000,
        "Content-Type: text/plain; charset=punycode",
        "From: " + '"' * 500_000,
        "From: " + "(" * 500_000,
        "Subject: " + "=?utf-8?q?a?= " * 50_000,
    ],
)
def test_a_header_of_a_letter_is_read_as_far_as_one_is_long(header: str) -> None:
    """Without the bound each of the first takes hours; with it some milliseconds."""
    letter = letter_of(f"{header}\nTo: bo\n\n-{'a' * 200_000} The tea is ready.\n".encode())
    assert "The tea is ready." in letter.text
