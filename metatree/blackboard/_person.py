"""Questions for the person, and waiting for what others write."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from math import inf
from typing import Any, Unpack

from metatree.blackboard._item import Item
from metatree.blackboard._rows import Filter
from metatree.blackboard.items import About, Items, Which
from metatree.errors import BadItem, Conflict, UnknownItem, UserError


class Watching(Items):
    """The part of a board that asks and waits."""

    def ask(self, question: str, **about: Unpack[About]) -> Item:
        """Put a question to the person; `answer` answers it, `wait_for_answer` waits for that."""
        if not question.strip():
            raise BadItem("the question is empty: give it some words")
        return self.add("questions", {"question": question, "answer": None}, **about)

    def open_questions(self, **which: Unpack[Which]) -> list[Item]:
        """Return the questions that were put to the person and have no answer, oldest first."""
        which["sections"] = "questions"
        return [item for item in self._share.rows.select(self._filter(which)) if is_open(item)]

    def answer(self, question_id: str, answer: str) -> Item:
        """Answer a question that is open; an empty answer declines it.

        Args:
            question_id: its id, or the beginning of it when no other begins so.

        Raises:
            UnknownItem: there is no such question.
            UserError: several begin so, or it has an answer already.
        """
        ids = self._share.rows.find_ids(question_id, self._view.within(Filter(sections=("questions",))))
        if question_id in ids:
            ids = [question_id]
        if len(ids) > 1:
            raise UserError(
                f"several questions begin with {question_id!r}: {', '.join(ids)}; give more of the id"
            )
        if not ids:
            raise UnknownItem(question_id)
        item = self.get(ids[0])
        if not is_open(item):
            raise UserError(f"question {item.id!r} has an answer already: {item.get_value('answer')!r}")
        fields: dict[str, Any] = {"answer": answer}
        if self.agent:
            fields["answered_by"] = self.agent
        try:
            with self._share.store.durable():
                return self.update(item.id, fields, if_version=item.version)
        except Conflict:
            return self.answer(item.id, answer)  # it says that somebody was faster, unless only a pin was

    def wait_for_answer(self, question_id: str, timeout_s: float | None = None) -> str | None:
        """Wait until a question is answered, from whichever process, and return the answer; None when time is over.

        Raises:
            UnknownItem: there is no such question, or it was removed meanwhile.
        """
        with self._share.rows.notifier.listen() as listener:
            for seconds in _pauses(lambda: is_open(self.get(question_id)), timeout_s):
                listener.wait(seconds)
        item = self.get(question_id)
        return None if is_open(item) else str(item.get_value("answer"))

    def changes(self, since: int = 0, *, limit: int | None = None, **which: Unpack[Which]) -> list[Item]:
        """Return what was added, changed or removed after a version of the board, in this order.

        An item is reported once, as it is now; `Item.removed` is true for one that is gone. The `changed` of the last
        one is the version to go on from; with a limit, items that changed together still come together.
        """
        return self._share.rows.changes(since, self._filter(which), limit)

    def wait(self, since: int | None = None, timeout_s: float | None = None) -> int:
        """Wait until the board is past a version, and return its version; also when the time is over.

        Args:
            since: None for the version at this moment.
            timeout_s: None to wait for ever.
        """
        since = self.version if since is None else since
        if self.version <= since:
            with self._share.rows.notifier.listen() as listener:
                for seconds in _pauses(lambda: self.version <= since, timeout_s):
                    listener.wait(seconds)
        return self.version

    async def await_change(self, since: int | None = None, timeout_s: float | None = None) -> int:
        """Do what `wait` does, in an event loop."""
        since = self.version if since is None else since
        if self.version <= since:
            with self._share.rows.notifier.listen() as listener:
                for seconds in _pauses(lambda: self.version <= since, timeout_s):
                    await listener.wait_async(seconds)
        return self.version

    def subscribe(
        self, since: int | None = None, *, timeout_s: float | None = None, **which: Unpack[Which]
    ) -> Iterator[Item]:
        """Yield what changes, as `changes` tells it, from whichever process; ends after `timeout_s` without a change.

        Args:
            since: a version to begin after; None for the one at the call.
        """
        since = self.version if since is None else since
        return self._subscribed(self._steps(since, timeout_s, self._filter(which)))

    def _subscribed(self, steps: Iterator[Item | float]) -> Iterator[Item]:
        with self._share.rows.notifier.listen() as listener:
            for step in steps:
                if isinstance(step, Item):
                    yield step
                else:
                    listener.wait(step)

    def _steps(self, since: int, timeout_s: float | None, which: Filter) -> Iterator[Item | float]:
        """Yield what changes, and each time that all of it was told for how long to wait for more."""
        quiet_since = time.monotonic()
        while True:
            for item in self._share.rows.changes(since, which):
                since = item.changed
                yield item
                quiet_since = time.monotonic()
            remaining_s = inf if timeout_s is None else quiet_since + timeout_s - time.monotonic()
            if remaining_s <= 0:
                return
            yield remaining_s

    async def watch(
        self, since: int | None = None, *, timeout_s: float | None = None, **which: Unpack[Which]
    ) -> AsyncIterator[Item]:
        """Do what `subscribe` does, in an event loop; `since` counts from the first step of the loop."""
        since = self.version if since is None else since
        steps = self._steps(since, timeout_s, self._filter(which))
        with self._share.rows.notifier.listen() as listener:
            for step in steps:
                if isinstance(step, Item):
                    yield step
                else:
                    await listener.wait_async(step)

    def listeners(self) -> int:
        """Return how many wait for a change of this board at this moment, in all processes."""
        return self._share.rows.notifier.listeners()


def is_open(item: Item) -> bool:
    """Say whether an item is a question that waits for an answer."""
    data = item.data
    return "question" in data and "answer" in data and data["answer"] is None


def _pauses(is_awaited: Callable[[], bool], timeout_s: float | None) -> Iterator[float]:
    """Yield how many seconds are left to wait, again and again, while something is awaited and time is left."""
    deadline = inf if timeout_s is None else time.monotonic() + timeout_s
    while is_awaited() and (remaining_s := deadline - time.monotonic()) > 0:
        yield remaining_s
