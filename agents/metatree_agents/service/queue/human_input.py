"""What a run asks the person before it goes on: kept with its query, shown in the thread, answered there.

A query that waits for a person is parked: no engine holds its topic, the attempt does not count, and the queries after
it wait too, since they may speak of its answer. Once all that it asks is answered, it is open again, and the engine
that claims it goes on with its run where it asked. Nothing of this is in a process, so any of them may end meanwhile.

Lost: an engine that holds the topic while a person thinks (it dies with its process, and is idle), and answering
later queries first. What is asked is JSON in its query's row: read with it, deleted with it, and no table to keep in
sync. A permission that is given in a thread is for the journal that asked, by a name of its own and the effect's
number: another engine with the same tree asks anew. `always` is an administrator's, since it holds for everybody who
asks.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from metatree_agents.service.database.database import ServiceDatabase, Transaction
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.queue.progress import add_step
from metatree_agents.service.queue.recommendations import MISSING, NO_TREE, keep
from metatree_agents.service.queue.turns import has_lease, open_again, take_back

Kind = Literal["question", "permission", "call"]
"""`question` wants words; `permission` (of a tool that changes something) and `call` (one that was interrupted, again)
want yes or no."""
Became = Literal["accepted", "again", "conflict", "unknown", "unclear", "not yours"]
MAX_ASKS: Final = 100
"""Of one query; a run that asks more fails."""
FOR_EVER: Final = 1e18
"""When the lease of a parked topic ends."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to the person, with the answer when there is one."""

    key: str
    """What the engine knows it by; to the service it is any text."""
    question: str
    kind: Kind
    at: float
    answer: str | None = None
    """None while it is open; empty when the person declined."""
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """What a page shows of an open question."""

    topic: str
    seq: int
    number: int
    """Its number in the query, from 1: the `Id` of `POST /api/answer-question`."""
    question: str
    since: str
    choices: tuple[str, ...]
    """What may be answered; empty for free text, where an empty answer declines."""


def asks_of(stored: str | None) -> list[Ask]:
    """Return the questions of a query from what its row keeps."""
    return [] if stored is None else [Ask(**each) for each in json.loads(stored)]


def forms(topic: str, seq: int, asks: Sequence[Ask], *, admin: bool = False) -> list[Form]:
    """Return the open questions of a query as a page shows them; only an administrator may say `always`."""
    return [
        Form(topic, seq, number, ask.question, stamp(ask.at), _choices(ask.kind, admin=admin))
        for number, ask in enumerate(asks, 1)
        if ask.answer is None
    ]


def on_wire(asks: Sequence[Ask]) -> list[dict[str, Any]]:
    """Return questions as the wire has them."""
    return [
        {
            "Id": number,
            "Question": ask.question,
            "Kind": ask.kind,
            "Choices": list(_choices(ask.kind)),
            "Since": stamp(ask.at),
            "Answer": ask.answer,
            "By": ask.by,
        }
        for number, ask in enumerate(asks, 1)
    ]


def _choices(kind: Kind, *, admin: bool = False) -> tuple[str, ...]:
    if kind == "question":
        return ()
    return ("yes", "always", "no") if admin and kind == "permission" else ("yes", "no")


class HumanInput:
    """Parks topics with what their runs ask, and takes the answers."""

    def __init__(self, database: ServiceDatabase, *, shared: bool = False) -> None:
        self._database = database
        self._shared = shared
        """Whether sharing is open: what a person answers is then remembered for others, too."""

    async def park(self, topic: str, seq: int, lease: str, new: Sequence[Ask]) -> bool:
        """Let a topic wait for a person; False when the lease is not its lease, or the query is not being answered.

        Args:
            new: what is asked now; what was asked before is kept with its answers.
        """
        now = self._database.clock()
        async with self._database.transaction() as do:
            if not await has_lease(do, topic, lease):
                return False
            row = await do.row("SELECT status, asked FROM query WHERE topic = ? AND seq = ?", topic, seq)
            if row is None or row[0] != "Pending":
                return False
            closed = [ask for ask in asks_of(row[1]) if ask.answer is not None]
            asks = [*closed, *(replace(ask, at=now, answer=None, by=None) for ask in new)]
            if len(asks) > MAX_ASKS:
                await do.execute("UPDATE query SET status = 'Failed' WHERE topic = ? AND seq = ?", topic, seq)
            else:
                await do.execute(
                    "UPDATE query SET status = 'Waiting', attempts = attempts - 1, asked = ?"
                    " WHERE topic = ? AND seq = ?",
                    *(_as_json(asks), topic, seq),
                )
            await take_back(do, topic)
            if len(asks) > MAX_ASKS:
                await tell(do, topic, seq, "failed", f"gave up after {MAX_ASKS} questions to a person")
                await open_again(do, topic)
                return True
            # A lease that nobody holds and that does not end: whatever asks for a topic to claim passes it over.
            await do.execute(
                "UPDATE topic SET engine = NULL, lease = ?, lease_until = ?, ready_at = ? WHERE id = ?",
                *(secrets.token_urlsafe(12), FOR_EVER, FOR_EVER, topic),
            )
            for ask in new:
                await tell(do, topic, seq, "waits", f"waits for a person: {ask.question}")
        return True

    async def answer(
        self, topic: str, seq: int, reply: str, *, number: int | None, by: str, admin: bool = False
    ) -> Became:
        """Take the answer to a question of a query; the query is open again once none of its questions is.

        Args:
            reply: the answer; empty declines a question that wants words.
            number: which question; None for the only one that is open.
            by: who answers.
            admin: whether a tool may be permitted for good.

        Returns:
            What became of it: another answer than the one that was given is a `conflict`, and so is no number when
            several are open; `unclear` is neither yes nor no where that is asked; `not yours` is an `always` of
            somebody who may not say it.
        """
        async with self._database.transaction() as do:
            await do.execute(
                "UPDATE topic SET last_seq = last_seq WHERE id = ?", topic
            )  # the topic's row first
            row = await do.row("SELECT asked, status FROM query WHERE topic = ? AND seq = ?", topic, seq)
            asks = asks_of(row[0]) if row is not None else []
            open_ones = [at for at, ask in enumerate(asks) if ask.answer is None]
            at = number - 1 if number is not None else open_ones[0] if len(open_ones) == 1 else None
            if at is None and open_ones:
                return "conflict"
            if at is None or row is None or not 0 <= at < len(asks):
                return "unknown"
            became, reply = _checked(asks[at], reply.strip(), admin=admin)
            if became != "accepted":
                return became
            if row[1] != "Waiting":
                return "conflict"
            asks[at] = replace(asks[at], answer=reply, by=by)
            if asks[at].kind == "question" and reply:
                await self._remember(do, topic, asks[at])
            await do.execute(
                "UPDATE query SET asked = ? WHERE topic = ? AND seq = ?", *(_as_json(asks), topic, seq)
            )
            await tell(
                do, topic, seq, "said", f"{by} answered: {reply}" if reply else f"{by} declined to answer"
            )
            if all(ask.answer is not None for ask in asks):
                await do.execute("UPDATE query SET status = 'Open' WHERE topic = ? AND seq = ?", topic, seq)
                await open_again(do, topic)
        return "accepted"

    async def _remember(self, do: Transaction, topic: str, ask: Ask) -> None:
        """Keep what a person answered among what they said, to be found there and taken back.

        It is for that person alone, whose later searches are told it when they ask the same, unless sharing is open:
        then the tree remembers it for all who may ask that, as what is recommended. Of several trees none does, since
        nobody said which.
        """
        row = await do.row("SELECT trees FROM topic WHERE id = ?", topic)
        trees = int(row[0]) if row else NO_TREE
        said = (ask.question, ask.answer or "", "", MISSING)
        await keep(
            do,
            topic,
            ask.by or "",
            said,
            now=self._database.clock(),
            tree=trees if self.shares(trees) else NO_TREE,
        )

    def shares(self, trees: int) -> bool:
        """Whether what a person answers in a topic of these trees is remembered for all who may ask them."""
        return self._shared and not trees & (trees - 1)


def _checked(ask: Ask, reply: str, *, admin: bool) -> tuple[Became, str]:
    if ask.kind != "question":
        reply = reply.casefold().strip(" .!")
        reply = {"y": "yes", "n": "no"}.get(reply, reply)
        if reply not in _choices(ask.kind, admin=True):
            return "unclear", reply
        if reply not in _choices(ask.kind, admin=admin):
            return "not yours", reply
    if ask.answer is not None:
        return ("again" if ask.answer == reply else "conflict"), reply
    return "accepted", reply


def _as_json(asks: Sequence[Ask]) -> str:
    return json.dumps([asdict(ask) for ask in asks])


async def tell(do: Transaction, topic: str, seq: int, event: str, text: str) -> None:
    """Add a step for those who watch, in this process or another."""
    step = {"Event": event, "Node": None, "Choice": None, "Text": text[:1_000]}
    await add_step(do, topic, seq, step)
