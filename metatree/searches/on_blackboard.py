"""A search on a blackboard: it reads its context there, writes down what it does, and asks the person."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatree._util.links import real
from metatree._util.numbers import whole_number
from metatree.durable import Effect
from metatree.errors import LeaseLost, UnknownItem
from metatree.result import SearchResult
from metatree.searches._state import SearchState

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard
    from metatree.blackboard.items import About
    from metatree.trees.tree import Tree

MAX_CHARS = 300
"""Of a reason, an answer or a passage; the journal has all of it."""
TAKEN_UP_S = 0.5
"""How often a run that waited looks what became of it in another process."""
_log = logging.getLogger("metatree")


class BoardLink:
    """Ties one run to a board. All it writes has ids made of the run's, so that writing it again changes nothing.

    A board that cannot be written to does not stop the search: the journal is the truth, and the next step writes what
    is missing.
    """

    def __init__(self, board: Blackboard, run_id: str) -> None:
        self._seen = board
        self.board = board.whole()
        """Its own records are written and read whatever the agent is shown."""
        self._run = run_id
        self._failed = False
        self._round: int | None = None
        self._written = -1
        self._question_texts: dict[int, str] = {}

    @property
    def _request_id(self) -> str:
        return f"{self._run}:request"

    def context(self, given: str) -> str:
        """Return what the caller says, and the board within the token limit of its settings."""
        limit = self.board.settings.context_tokens
        if limit <= 0 or self._seen.is_empty():
            return given
        rendered = self._seen.render(limit).text
        return f"{given}\n\n{rendered}" if given else rendered

    def place(self) -> dict[str, Any]:
        """Return where the board is, as JSON for the journal."""
        path = self.board.path
        return {
            "path": None if path is None else str(path.resolve()),
            "shared": self.board.shared,
            "name": self.board.name,
            "agent": self.board.agent,
        }

    def write(self, state: SearchState) -> None:
        """Write down what has happened since the last call: steps, questions for the person, their answers."""
        try:
            if self._written < 0:
                self._begin(state)
            self._steps(state)
        except Exception:
            if not self._failed:
                _log.warning("run %s could not write to its board; it goes on", self._run, exc_info=True)
            self._failed = True

    def finish(self, result: SearchResult) -> None:
        """Put what the run has found beside its request, and what stays open with the passages that come closest."""
        outcome: dict[str, Any] = {"ended": result.ended}
        if result.answer or result.nodes:
            outcome = {"result": result.answer or [node.id for node in result.nodes], **outcome}
        if result.open_questions:
            outcome["open"] = [_open(question, result) for question in result.open_questions]
        try:
            # What was open when the run stopped before may have been answered since.
            self.board.update(
                self._request_id,
                lambda data: {name: value for name, value in data.items() if name != "open"} | outcome,
            )
        except Exception:
            _log.warning("run %s could not write its result to its board", self._run, exc_info=True)

    def answers(self, pending: Iterable[Effect]) -> dict[int, dict[str, Any]]:
        """Return the answers that the board has to the questions a run waits with, by effect."""
        answers: dict[int, dict[str, Any]] = {}
        for effect in pending:
            if effect.kind == "ask":
                answer = self._answer(effect.id, effect.payload.question)
                if answer is not None:
                    answers[effect.id] = {"answer": answer}
        return answers

    async def wait(self, pending: Collection[Effect], timeout_s: float) -> bool:
        """Wait until the board has an answer for one of these effects, from whichever process.

        Returns:
            False when the time is over, or none of the questions is on the board.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            version = self.board.version
            # Before the answers: one may come in between.
            open_questions = self.board.open_questions(run=self._run)
            if self.answers(pending):
                return True
            remaining_s = deadline - time.monotonic()
            if not open_questions or remaining_s <= 0:
                return False
            await self.board.await_change(version, remaining_s)

    def _begin(self, state: SearchState) -> None:
        """Put the request on the board, and find out how far an earlier process came."""
        known = self.board.items(run=self._run, sections="requests", limit=1)
        if not known:
            request: dict[str, Any] = {"request": "; ".join(state.given["questions"])}
            if wishes := state.given.get("wishes"):
                request["standing_wishes"] = [
                    {name: wish[name] for name in ("text", "who", "at", "source", "file")} for wish in wishes
                ]
            known = [self.board.add_requests(request, id=self._request_id, run=self._run)]
        self._round = known[0].round
        last = self.board.last_id(f"{self._run}:t")
        self._written = 0 if last is None else (whole_number(last.rpartition(":t")[2]) or 0) + 1

    def _steps(self, state: SearchState) -> None:
        questions = {
            waiting.effect.id: waiting.effect.payload.question
            for waiting in state.waiting.values()
            if waiting.effect.kind == "ask" and waiting.effect.id not in self._question_texts
        }
        entries = state.trace[self._written :]
        if not entries and not questions:
            return
        self.board.add_all([*self._trajectories(state, entries), *self._questions(questions)])
        self._written = len(state.trace)
        self._question_texts |= questions
        for entry in entries:
            if entry["event"] == "person":
                self._settle(state, entry["data"])

    def _trajectories(
        self, state: SearchState, entries: list[dict[str, Any]]
    ) -> Iterator[tuple[str, Any, About]]:
        for index, entry in enumerate(entries, start=self._written):
            if entry["event"] == "mark":
                continue  # the step that ruled a node out, or left it, says so
            step = {
                "step": entry["step"],
                "subtask": "; ".join(state.frames[entry["frame"]].questions),
                "action_representation": describe(entry),
            }
            about: About = {
                "id": f"{self._run}:t{index:07d}",
                "run": self._run,
                "step": entry["step"],
                "round": self._round,
                "sources": [entry["node"]] if entry["node"] else [],
            }
            yield "trajectories", step, about

    def _questions(self, questions: Mapping[int, str]) -> Iterator[tuple[str, Any, About]]:
        for effect_id, question in questions.items():
            about: About = {
                "id": self._question_id(effect_id),
                "run": self._run,
                "round": self._round,
                "sources": [self._request_id],
            }
            yield "questions", {"question": question, "answer": None}, about

    def _settle(self, state: SearchState, entry: Mapping[str, Any]) -> None:
        """Close the question on the board when it was answered in another way."""
        for effect_id, question in self._question_texts.items():
            if (
                question == entry["question"]
                and effect_id not in state.waiting
                and self._answer(effect_id) is None
            ):
                self.board.update(self._question_id(effect_id), {"answer": entry["answer"]})

    def _question_id(self, effect_id: int) -> str:
        return f"{self._run}:q{effect_id}"

    def _answer(self, effect_id: int, question: str | None = None) -> str | None:
        try:
            item = self.board.get(self._question_id(effect_id))
            answer = item.get_value("answer")
            if item.section != "questions" or question not in (None, item.get_value("question")):
                return None  # it was never asked: somebody else wrote it
        except UnknownItem:  # it was removed from the board: nobody can answer it there
            return None
        return None if answer is None else str(answer)


def complete(
    result: SearchResult, state: SearchState, board: Blackboard | None, tree: Tree | None, *, ours: bool
) -> None:
    """Write what is missing on the board of a run that has ended: it may have died between journal and board."""
    place = state.given.get("board")
    with nullcontext(board) if board is not None else reopened(place, tree, ours=ours) as open_board:
        if open_board is not None:
            link = BoardLink(open_board, result.run_id)
            link.write(state)
            link.finish(result)


@contextmanager
def reopened(
    place: Mapping[str, Any] | None, tree: Tree | None, *, ours: bool
) -> Iterator[Blackboard | None]:
    """Open the board that a run began with, for the block; None when there was none, it was in memory, or is gone.

    A run that is not `ours` has none but the tree's: the place that it names may be a board of this user's elsewhere,
    or the address of a server of somebody else.
    """
    from metatree.blackboard import Blackboard

    if place is not None and place.get("shared") and tree is not None and tree.shared is not None:
        yield Blackboard(tree, name=place["name"], agent=place["agent"])
        return
    if place is None or place["path"] is None:
        yield None
        return
    name, agent = place["name"], place["agent"]
    memory = None if tree is None else tree.memory.path
    if tree is not None and memory is not None and str(memory.resolve()) == place["path"]:
        yield Blackboard(tree, name=name, agent=agent)
    elif not ours:
        _log.warning("the run was begun by somebody else: it goes on without its board in %s", place["path"])
        yield None
    elif (there := real(Path(place["path"]))) != Path(place["path"]):
        _log.warning("the board %s leads to %s now; the run goes on without it", place["path"], there)
        yield None
    elif there.exists():
        with Blackboard(place["path"], name=name, agent=agent) as board:
            yield board
    else:
        _log.warning("the board %s is gone; the run goes on without it", place["path"])
        yield None


async def when_answered(
    result: SearchResult,
    link: BoardLink | None,
    wait: bool | float,
    pending: Callable[[], Collection[Effect]],
    go_on: Callable[[], Awaitable[SearchResult]],
) -> SearchResult:
    """Go on with a run that waits for a person as answers come, until it ends in another way or the time is over.

    Args:
        result: what the run has come to.
        wait: True for as long as it takes, or a number of seconds.
        pending: gives the effects that it waits with.
        go_on: takes the run up again.
    """
    deadline = inf if wait is True else time.monotonic() + float(wait)
    while link is not None and wait and result.ended == "waiting":
        remaining_s = max(0.0, deadline - time.monotonic())
        waiting = [effect for effect in pending() if effect.kind == "ask"]
        if waiting and not await link.wait(waiting, remaining_s):
            break  # none is left when another process has gone on already
        try:
            result = await go_on()
        except LeaseLost:
            # Another process has taken it up with the answer: its end is in the journal when it comes.
            if remaining_s <= 0:
                break
            await asyncio.sleep(TAKEN_UP_S)
    return result


def describe(entry: Mapping[str, Any]) -> str:
    """Return one entry of a trace as a sentence."""
    data, node, reason = entry["data"], entry["node"], _short(entry["reason"])
    because = f": {reason}" if reason else ""
    match entry["event"]:
        case "route":
            chosen = f"chose {data['choice']}" if data.get("choice") else "chose nothing"
            out = ", ".join(list(data.get("unviable") or {})[:8])
            return f"at {node} {chosen}{f', ruled out {out}' if out else ''}{because}"
        case "read":
            answers = "; ".join(f"{a['question']} {_short(a['answer'])}" for a in data.get("answers", ()))
            return f"read {node}{f': {answers}' if answers else because}"
        case "frame":
            return f"began at {node}"
        case "person":
            return f"asked the person: {data['question']} {_short(data['answer']) or '(declined)'}"
        case "tool" | "missed_node":
            return f"{entry['event'].replace('_', ' ')} {data.get('tool', '')} at {node}{because}"
        case event:
            return f"{event.replace('_', ' ')}{f' {node}' if node else ''}{because}"


def _open(question: str, result: SearchResult) -> dict[str, Any]:
    closest = [
        {
            "node": passage.node,
            "place": passage.place,
            "lines": list(passage.lines),
            "quote": _short(passage.quote),
        }
        for passage in result.closest
        if passage.question == question
    ]
    return {"question": question, "closest": closest} if closest else {"question": question}


def _short(text: Any) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= MAX_CHARS else line[: MAX_CHARS - 1] + "…"
