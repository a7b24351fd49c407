"""Small exports in each format, written by hand after the programs that make them and their documentation."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

CHATGPT: list[dict[str, Any]] = [
    {
        "title": "Boat paint",
        "create_time": 1715939999.5,
        "update_time": 1715940100.1,
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": {
                "id": "s",
                "message": {
                    "id": "s",
                    "author": {"role": "system", "name": None, "metadata": {}},
                    "create_time": None,
                    "content": {"content_type": "text", "parts": [""]},
                    "metadata": {"is_visually_hidden_from_conversation": True},
                },
                "parent": "root",
                "children": ["u1"],
            },
            "u1": {
                "id": "u1",
                "message": {
                    "id": "u1",
                    "author": {"role": "user", "name": None, "metadata": {}},
                    "create_time": 1715939999.5,
                    "content": {"content_type": "text", "parts": ["Which paint for the ketch?"]},
                    "metadata": {"attachments": [{"id": "file-1", "name": "ketch.png"}]},
                },
                "parent": "s",
                "children": ["draft", "a1"],
            },
            "draft": {
                "id": "draft",
                "message": {
                    "id": "draft",
                    "author": {"role": "assistant", "metadata": {}},
                    "content": {"content_type": "text", "parts": ["A draft."]},
                },
                "parent": "u1",
                "children": [],
            },
            "a1": {
                "id": "a1",
                "message": {
                    "id": "a1",
                    "author": {"role": "assistant", "metadata": {}},
                    "create_time": 1715940001.0,
                    "content": {"content_type": "text", "parts": ["Epoxy, two coats."]},
                },
                "parent": "u1",
                "children": [],
            },
        },
        "current_node": "a1",
        "conversation_id": "6646-aaaa",
        "id": "6646-aaaa",
    }
]
CLAUDE: list[dict[str, Any]] = [
    {
        "uuid": "c1",
        "name": "Boat paint",
        "created_at": "2024-05-17T10:00:00.000000Z",
        "updated_at": "2024-05-17T10:01:00.000000Z",
        "account": {"uuid": "me"},
        "chat_messages": [
            {
                "uuid": "m1",
                "text": "Which paint for the ketch?",
                "content": [{"type": "text", "text": "Which paint for the ketch?"}],
                "sender": "human",
                "created_at": "2024-05-17T10:00:00.000000Z",
                "attachments": [{"file_name": "list.txt", "extracted_content": "white lead"}],
                "files": [],
            },
            {
                "uuid": "m2",
                "text": "",
                "content": [{"type": "text", "text": "Epoxy, two coats."}],
                "sender": "assistant",
                "created_at": "2024-05-17T10:00:20.000000Z",
                "attachments": [],
                "files": [],
            },
        ],
    }
]
SLACK: dict[str, Any] = {
    "users.json": [
        {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lee", "display_name": "annl"}},
        {"id": "U2", "name": "bob", "profile": {"real_name": "", "display_name": "bob"}},
    ],
    "channels.json": [{"id": "C1", "name": "yard", "members": ["U1", "U2"]}],
    "yard/2024-05-17.json": [
        {
            "type": "message",
            "user": "U1",
            "text": "Is <@U2> in <#C9|dock>? See <https://x.org/a|the list>",
            "ts": "1715939999.000100",
        },
        {
            "type": "message",
            "user": "U2",
            "text": "Yes &amp; no",
            "ts": "1715940100.000200",
            "thread_ts": "1715939999.000100",
            "files": [{"name": "plan.pdf"}],
        },
        {"type": "message", "user": "U1", "text": "Fine paint", "ts": "1715940000.000100"},
    ],
    "yard/2024-05-18.json": [
        {
            "type": "message",
            "user": "U3",
            "user_profile": {"real_name": "Cy"},
            "text": "Late",
            "ts": "1716030000.000100",
        }
    ],
}
DISCORD: dict[str, Any] = {
    "guild": {"id": "1", "name": "Boats", "iconUrl": "https://x.org/i.png"},
    "channel": {
        "id": "22",
        "type": "GuildTextChat",
        "categoryId": "2",
        "category": "Yard",
        "name": "paint",
        "topic": None,
    },
    "dateRange": {"after": None, "before": None},
    "exportedAt": "2024-05-18T00:00:00+00:00",
    "messages": [
        {
            "id": "901",
            "type": "Default",
            "timestamp": "2024-05-17T10:00:00.123+00:00",
            "timestampEdited": None,
            "callEndedTimestamp": None,
            "isPinned": False,
            "content": "Which paint for the ketch?",
            "author": {
                "id": "7",
                "name": "ann",
                "discriminator": "0000",
                "nickname": "Ann",
                "color": None,
                "isBot": False,
                "roles": [],
            },
            "attachments": [{"id": "5", "url": "a.png", "fileName": "a.png", "fileSizeBytes": 3}],
            "embeds": [],
            "stickers": [],
            "reactions": [],
            "mentions": [],
        },
        {
            "id": "902",
            "type": "Reply",
            "timestamp": "2024-05-17T10:01:00+00:00",
            "content": "Epoxy.",
            "author": {"id": "8", "name": "bob", "nickname": None},
            "attachments": [],
            "embeds": [{"title": "Epoxy", "description": "A resin"}],
            "reference": {"messageId": "901", "channelId": "22", "guildId": "1"},
        },
    ],
    "messageCount": 2,
}
TELEGRAM_CHAT: dict[str, Any] = {
    "name": "Ann",
    "type": "personal_chat",
    "id": 4711,
    "messages": [
        {
            "id": 1,
            "type": "service",
            "date": "2024-05-17T12:00:00",
            "date_unixtime": "1715940000",
            "actor": "Ann",
            "actor_id": "user7",
            "action": "pin_message",
            "text": "",
            "text_entities": [],
        },
        {
            "id": 2,
            "type": "message",
            "date": "2024-05-17T12:01:00",
            "date_unixtime": "1715940060",
            "from": "Ann",
            "from_id": "user7",
            "text": ["See ", {"type": "link", "text": "x.org"}, " on paint"],
            "text_entities": [],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2024-05-17T12:02:00",
            "date_unixtime": "1715940120",
            "from": "Bob",
            "from_id": "user8",
            "reply_to_message_id": 2,
            "text": "Thanks",
            "text_entities": [],
        },
        {
            "id": 4,
            "type": "message",
            "date": "2024-05-17T12:03:00",
            "from": None,
            "from_id": "user9",
            "media_type": "sticker",
            "sticker_emoji": "👍",
            "text": "",
        },
    ],
}
TELEGRAM_ALL: dict[str, Any] = {
    "about": "Here is the data you requested.",
    "personal_information": {"user_id": 7, "first_name": "Ann"},
    "chats": {
        "about": "This page lists all chats from this export.",
        "list": [
            TELEGRAM_CHAT,
            {"type": "saved_messages", "id": 1, "messages": [TELEGRAM_CHAT["messages"][1]]},
        ],
    },
}
MATRIX: dict[str, Any] = {
    "room_name": "Yard",
    "room_creator": "@ann:example.org",
    "topic": "",
    "export_date": "17 May 2024",
    "exported_by": "Ann",
    "messages": [
        {
            "type": "m.room.member",
            "sender": "@ann:example.org",
            "state_key": "@ann:example.org",
            "content": {"membership": "join", "displayname": "Ann"},
            "event_id": "$0",
            "origin_server_ts": 1715939990000,
            "room_id": "!r:example.org",
        },
        {
            "type": "m.room.message",
            "sender": "@ann:example.org",
            "content": {"msgtype": "m.text", "body": "Which paint?"},
            "event_id": "$1",
            "origin_server_ts": 1715940000000,
            "room_id": "!r:example.org",
        },
        {
            "type": "m.room.message",
            "sender": "@bob:example.org",
            "content": {
                "msgtype": "m.text",
                "format": "org.matrix.custom.html",
                "body": "> <@ann:example.org> Which paint?\n\nEpoxy",
                "m.relates_to": {"m.in_reply_to": {"event_id": "$1"}},
            },
            "event_id": "$2",
            "origin_server_ts": 1715940060000,
            "room_id": "!r:example.org",
        },
        {
            "type": "m.room.message",
            "sender": "@ann:example.org",
            "content": {
                "msgtype": "m.text",
                "body": "* Which paint for the ketch?",
                "m.new_content": {"msgtype": "m.text", "body": "Which paint for the ketch?"},
                "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"},
            },
            "event_id": "$3",
            "origin_server_ts": 1715940070000,
            "room_id": "!r:example.org",
        },
        {
            "type": "m.room.encrypted",
            "sender": "@cy:example.org",
            "content": {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "…"},
            "event_id": "$4",
            "origin_server_ts": 1715940080000,
            "room_id": "!r:example.org",
        },
    ],
}
WHATSAPP = "[17.05.24, 14:03:22] Ann: Which paint?\n"
VTT = """WEBVTT

NOTE made by a meeting

1
00:00:01.000 --> 00:00:03.500
<v Ann Lee>Shall we paint &amp; launch</v>

2
00:00:04.000 --> 00:00:06.000
<v Ann Lee>on Monday?</v>

00:00:07.000 --> 00:00:08.000 align:start position:0%
<v Bob>Yes.</v>
"""
SRT = """1
00:00:01,000 --> 00:00:03,500
Ann Lee: Shall we paint?

2
01:00:04,000 --> 01:00:06,000
Bob: Yes.
On Monday.
"""
MBOX = """From ann@example.org Fri May 17 10:00:00 2024
From: Ann Lee <ann@example.org>
To: bob@example.org
Subject: Paint
Date: Fri, 17 May 2024 10:00:00 +0000
Message-ID: <1@example.org>

Which paint for the ketch?
>From what I hear, epoxy.

From bob@example.org Fri May 17 11:00:00 2024
From: Bob <bob@example.org>
Subject: Re: Paint
Date: Fri, 17 May 2024 09:00:00 +0000
Message-ID: <2@example.org>
In-Reply-To: <1@example.org>
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain; charset=utf-8


--b
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<html><head><style>p {color: red}</style></head><body><p>Epoxy &amp; =C3=BCber=
 all</p><p>two coats</p></body></html>
--b--
"""


def packed(files: dict[str, Any]) -> bytes:
    """A zip of files; what is no text becomes JSON."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return data.getvalue()
