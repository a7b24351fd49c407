"""A router that asks a person at the terminal."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TextIO

from metatree.errors import BadModelAnswer, UserError
from metatree.parts import embedded_parts
from metatree.protocols import Evidence, RouteDecision, Router, RouteRequest, Suite
from metatree_routers.llm.labels import labels, offered

HELP = "A letter chooses; - A C rules out; n: none of these; q: stop."


class HumanRouter(Router):
    """Shows each menu to a person and reads the choice: a letter, `- A C` to rule out, `n` for none, `q` to stop.

    Args:
        read: returns the next line, raises EOFError at the end; None reads standard input.
        out: where menus are shown; None for standard error.

    Example:
        >>> import asyncio, io
        >>> from metatree import Node, Option, RouteRequest
        >>> menu = RouteRequest(("Where?",), "", Node("n", "src"), (Option("a", "a.py"), Option("b", "b.py")))
        >>> asyncio.run(HumanRouter(read=lambda: "b", out=io.StringIO()).route(menu)).choice
        'b'
    """

    def __init__(self, *, read: Callable[[], str] | None = None, out: TextIO | None = None) -> None:
        self._read = read or _line_from_terminal
        self._out = out
        self._has_shown_help = False
        self._waiting: Future[str | BaseException] | None = None

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return this router with the embedded reader and the other embedded parts."""
        return replace(embedded_parts(evidence), router=self)

    async def route(self, request: RouteRequest) -> RouteDecision:
        """Ask until an answer fits; raises UserError when the person stops, so that the run can be resumed."""
        self._show(request)
        while True:
            try:
                reply = (await self._next_line()).strip()
            except EOFError:
                raise UserError("there is nobody at the terminal: input has ended") from None
            if reply.casefold() in ("q", "quit"):
                raise UserError("stopped at the terminal")
            try:
                return _decision(reply, request)
            except BadModelAnswer as exc:
                self._write(f"{exc}. {HELP}\n> ")

    def _show(self, request: RouteRequest) -> None:
        lines = ["", *(f"? {_plain(question)}" for question in request.questions)]
        lines.append(f"In {_plain(request.node.title)}:")
        for label, option in zip(labels(len(request.options)), request.options, strict=True):
            under = f" (in {option.parent})" if option.parent else ""
            lines.append(
                f"  {label}  {_plain(option.title)}{_plain(under)}  {_plain(option.description)}".rstrip()
            )
            lines += [f"       > {_plain(hint)}" for hint in option.hints[:2]]
        if not self._has_shown_help:
            lines.append(HELP)
        self._has_shown_help = True
        self._write("\n".join(lines) + "\n> ")

    def _write(self, text: str) -> None:
        out = self._out or sys.stderr
        out.write(text)
        out.flush()

    async def _next_line(self) -> str:
        """Read a line in a thread that may outlive this call: reading a terminal cannot be interrupted.

        A line that comes after its request was given up is the answer to the next one.
        """
        if self._waiting is None:
            self._waiting = Future()
            self._waiting.set_running_or_notify_cancel()  # who gives up does not cancel the reading
            threading.Thread(
                target=self._fetch, args=(self._waiting,), name="metatree-human", daemon=True
            ).start()
        line = await asyncio.wrap_future(self._waiting)
        self._waiting = None
        if isinstance(line, BaseException):
            raise line
        return line

    def _fetch(self, answer: Future[str | BaseException]) -> None:
        try:
            answer.set_result(self._read())
        except BaseException as exc:  # it belongs to the one who waits
            answer.set_result(exc)


def _decision(reply: str, request: RouteRequest) -> RouteDecision:
    if reply.casefold() in ("n", "none"):
        return RouteDecision(None, {}, "a person chose none")
    ruling_out = reply.startswith("-")
    words = reply.lstrip("- ").replace(",", " ").split() if ruling_out else [reply]
    choices = [offered(word, request.options) for word in words]
    if not words or None in choices:
        raise BadModelAnswer(f"{reply!r} is none of the options")
    ids = [option.id for option in choices if option is not None]
    if ruling_out:
        return RouteDecision(None, dict.fromkeys(ids, "ruled out by a person"), "ruled out by a person")
    return RouteDecision(ids[0], {}, "chosen by a person")


def _plain(text: str) -> str:
    """Take control characters out, which a terminal would obey."""
    return "".join(char if char.isprintable() else " " for char in text)


def _line_from_terminal() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


def human_suite(name: str) -> Suite:
    """Return the parts for the router name `human`."""
    return HumanRouter().suite()
