"""Conversations of chat pages as topics: which topic a list of messages goes on with, and when a request is a retry.

A chat client sends the whole conversation with each request and no name for it. A request is known by a hash of its
asker and all messages of people and answers (not of the system's, in which chat pages put the time). Its topic is that
of the request that the conversation had before, when the answer that the client shows is the one that was given and
nothing came after it there; else the conversation is another one (it began elsewhere, was edited, or branches off), and
its earlier turns are written into a topic of its own, where any engine finds them.

Where the run of a query asks the person something, that is the answer that the client shows, and the next message is
the answer to it.

The same request again is a retry, and gets the query that it made before, while that is unanswered, when its answer
never went out, or when the client says so (`X-Stainless-Retry-Count`, `Idempotency-Key`). Otherwise somebody wants
another answer, in a topic of its own.

Lost: the hash of people's messages alone (two conversations that begin with "hello" become one, edits are not seen);
a cookie or header, which no client sends; the earlier conversation in the query's text, which is then searched for;
always a new query (official clients repeat by themselves after a timeout), and never one (`Regenerate`).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from metatree.errors import TransientError
from metatree_agents.service.accounts.tree_rights import UNNAMED, missing
from metatree_agents.service.database.database import ServiceDatabase, Transaction
from metatree_agents.service.openai._models import content_of
from metatree_agents.service.queue.queue import COLUMNS, Queue, query_of

KEPT_TURNS: Final = 20
"""How many earlier turns go into a new topic; engines look at the last ten."""
TOLD: Final = "Said in the conversation before it came here."
_OPENS = re.compile(r"<(think|thinking|details)\b")
_LINK: Final = re.compile(r"\[((?:[^][\\\n]|\\.){1,2000})\]\([^()\s]{1,20000}/node\?id=[^()\s]*\)")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, and the answer that the client shows for it."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a chat request says.

    Args:
        question: the last message, to be answered.
        turns: what was said before.
        topic: the topic that the client names; None where it leaves that to us.
        model: what the engine is asked for.
    """

    question: str
    turns: Sequence[Exchange] = ()
    topic: str | None = None
    model: str = "default"

    def asked(self, owner: str) -> str:
        """Return what this request is known by."""
        turns = [(turn.question, shown(turn.answer)) for turn in self.turns]
        content = json.dumps([owner, self.topic, turns, self.question])
        return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def before(self) -> Conversation:
        """Return the request that this conversation had before."""
        return Conversation(self.turns[-1].question, self.turns[:-1], self.topic, self.model)


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """Where the query of a request is; `asked` and `number` name the request itself."""

    topic: str
    seq: int
    asked: str
    number: int
    joined: bool = False
    """Whether the query was there before."""
    replies: bool = False
    """Whether the request is the answer to what the run of the query asks."""

    @property
    def id(self) -> str:
        """What the request goes by in OpenAI's form."""
        return f"chatcmpl-{self.asked[:24]}{self.number}"


class Conversations:
    """Chat requests and the queries that they became."""

    def __init__(self, database: ServiceDatabase, queue: Queue) -> None:
        self._database = database
        self._queue = queue

    async def place(
        self,
        owner: str,
        conversation: Conversation,
        *,
        retry: str | None = None,
        again: bool = False,
        modifiers: Mapping[str, Any] | None = None,
        trees: int = UNNAMED,
    ) -> ChatQuery:
        """Return the query of a request: the one that it made before when it is a retry, else one that is added now.

        Args:
            owner: whose topic it is.
            retry: a key that names this request and its retries.
            again: whether the client says that it tries again.
            modifiers: kept with the query, for the engine.
            trees: the set of those that it searches; a request that searches others is another one.

        Raises:
            Refused: the topic that the client names belongs to somebody else.
        """
        key, options = conversation.asked(owner), dict(modifiers or {})
        while True:
            async with self._database.transaction() as do:
                # First, so that the same request, if it comes in between, is seen as the last or has taken the number.
                row = await do.row("SELECT max(number) FROM chat WHERE asked = ?", key)
                number = 1 + int((row and row[0]) or 0)
                last = await do.row(
                    "SELECT chat.number, chat.topic, chat.seq, chat.retry, chat.delivered_at, query.status,"
                    " query.model, query.modifiers FROM chat"
                    " JOIN query ON query.topic = chat.topic AND query.seq = chat.seq"
                    " JOIN topic ON topic.id = chat.topic"
                    " WHERE chat.asked = ? AND topic.trees = ? ORDER BY chat.number DESC LIMIT 1",
                    *(key, trees),
                )
                same = last is not None and (last[6], json.loads(last[7])) == (conversation.model, options)
                if last is not None and _is_retry(last, retry, again=again, same=same):
                    return ChatQuery(last[1], int(last[2]), key, int(last[0]), joined=True)
                topic, replied = await self._going_on(do, owner, conversation, trees) or (
                    conversation.topic or "chat-" + secrets.token_urlsafe(12),
                    None,
                )
                # The same request at the same moment, in another process, waits here for this one and joins it.
                if await do.execute(
                    "INSERT INTO chat(asked, number, topic, seq, retry) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    *(key, number, topic, replied or 0, retry),
                ):
                    if replied is not None:
                        return ChatQuery(topic, replied, key, number, joined=True, replies=True)
                    await self._write_turns(do, topic, owner, conversation, trees)
                    seq, _ = await self._queue.add_within(
                        do,
                        topic,
                        owner,
                        conversation.question,
                        model=conversation.model,
                        modifiers=options,
                        trees=trees,
                    )
                    await do.execute(
                        "UPDATE chat SET seq = ? WHERE asked = ? AND number = ?", seq, key, number
                    )
                    return ChatQuery(topic, seq, key, number)

    async def delivered(self, place: ChatQuery) -> None:
        """Note that the answer went out: the same request is none of its retries any more."""
        with suppress(TransientError):  # the answer is out: the same request finds it once more then
            await self._database.execute(
                "UPDATE chat SET delivered_at = ? WHERE asked = ? AND number = ?",
                *(self._database.clock(), place.asked, place.number),
            )

    async def _going_on(
        self, do: Transaction, owner: str, conversation: Conversation, trees: int
    ) -> tuple[str, int | None] | None:
        """Return the topic of a conversation: that whose last query is its last turn, as the client shows it.

        The number is that of the query whose run asked what the conversation answers now; None where it asks.
        """
        if not conversation.turns:
            return None
        rows = await do.rows(
            f"SELECT topic.last_seq, {COLUMNS} FROM chat JOIN topic ON topic.id = chat.topic"
            " JOIN query ON query.topic = chat.topic AND query.seq = chat.seq"
            " WHERE chat.asked = ? AND topic.trees = ? AND query.status IN ('Done', 'Waiting', 'Stopped')"
            " ORDER BY chat.number DESC",
            *(conversation.before().asked(owner), trees),
        )
        for last, *columns in rows:
            query = query_of(columns)
            if shown(content_of(query)) != shown(conversation.turns[-1].answer):
                continue
            if query.status == "Waiting":
                return query.topic, query.seq
            if query.seq == last:
                return query.topic, None
        return None

    async def _write_turns(
        self, do: Transaction, topic: str, owner: str, conversation: Conversation, trees: int
    ) -> None:
        """Write the earlier turns of a conversation that was held elsewhere into its new topic."""
        turns = conversation.turns[-KEPT_TURNS:]
        if not turns:
            return
        now = self._database.clock()
        sources = await self._sources_before(do, owner, conversation, trees)
        if not await do.execute(
            "INSERT INTO topic(id, owner, made_at, last_seq, trees) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            *(topic, owner, now, len(turns), trees),
        ):
            return
        for seq, turn in enumerate(turns, start=1):
            await do.execute(
                "INSERT INTO query(topic, seq, text, asked_by, model, modifiers, at, status, attempts, answer, think,"
                " sources, answered_at) VALUES (?, ?, ?, ?, ?, '{}', ?, 'Done', 0, ?, ?, ?, ?)",
                *(topic, seq, turn.question, owner, conversation.model, now),
                *(json.dumps([turn.answer]), json.dumps([TOLD]), sources if seq == len(turns) else "[]", now),
            )

    async def _sources_before(
        self, do: Transaction, owner: str, conversation: Conversation, trees: int
    ) -> str:
        """Return what the last turn of a conversation quotes where that was answered here, of other trees.

        A question that refers to it stays in the tree that it is from.
        """
        rows = await do.rows(
            f"SELECT {COLUMNS} FROM chat JOIN query ON query.topic = chat.topic AND query.seq = chat.seq"
            " JOIN topic ON topic.id = chat.topic WHERE chat.asked = ? AND query.status = 'Done'"
            " AND (topic.trees & ?) = 0 ORDER BY chat.number DESC LIMIT 5",
            *(conversation.before().asked(owner), missing(trees)),
        )
        for query in map(query_of, rows):
            if shown(content_of(query)) == shown(conversation.turns[-1].answer) and query.ending.answered:
                return json.dumps(query.sources or [])
        return "[]"


def shown(answer: str) -> str:
    """Return an answer as it is compared: without thinking that a client put into it, and whatever its spaces are.

    Without where its titles lead, too: the service may have another address by now.

    Example:
        >>> shown("<think>Hm.</think> Nine  watts.")
        'Nine watts.'
        >>> shown("[The hall](https://memory.example.org/node?id=hall#quoted) says so.")
        'The hall says so.'
    """
    parts: list[str] = []
    at, unclosed = 0, set[str]()
    # One pass: `<think\b.*?</think>` would read to the end of the answer again from each mark that nothing closes.
    for opens in _OPENS.finditer(answer):
        name = opens[1]
        if opens.start() < at or name in unclosed:
            continue
        end = answer.find(f"</{name}>", opens.end())
        if end < 0:
            unclosed.add(name)
            continue
        parts += [answer[at : opens.start()], " "]
        at = end + len(f"</{name}>")
    told = _LINK.sub(lambda link: re.sub(r"\\(.)", r"\1", link[1]), "".join([*parts, answer[at:]]))
    return " ".join(told.split())


def _is_retry(last: Sequence[Any], retry: str | None, *, again: bool, same: bool) -> bool:
    _, _, _, its_retry, delivered_at, status, *_ = last
    if again or (retry is not None and retry == its_retry):
        return True
    return same and (
        status in ("Open", "Pending", "Waiting") or (status in ("Done", "Stopped") and delivered_at is None)
    )
