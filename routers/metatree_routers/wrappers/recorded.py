"""Record what a router and its relatives are asked and answer, and replay it without them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from metatree import errors
from metatree.errors import BadModelAnswer, MetatreeError, TransientError, UserError
from metatree.protocols import AnyRouter, Evidence, RouteRequest, Suite, Traits
from metatree_routers.wrappers._codec import answer_from, answer_json, request_json
from metatree_routers.wrappers._wrapper import WrappedPart, Wrapper
from metatree_routers.wrappers.disk_cache import key_of
from metatree_routers.wrappers.recording_file import RecordedLines, RecordingFile


class RecordedRouter(Wrapper):
    """Appends each request of a router and its parts with the answer, or the error, to a file of JSON lines.

    `metatree_routers.llm.Recording` does the same one level below, with the requests that reach a server.

    Args:
        inner: the router, with the parts it brings, or a suite.
        path: the file; appended to.
    """

    def __init__(self, inner: AnyRouter | Suite, path: str | Path) -> None:
        super().__init__(inner)
        self._file = RecordingFile(path)
        self.path = self._file.path
        self._started = False
        self._fits = self.traits.capacity
        if self._fits is not None:
            self.traits = replace(self.traits, capacity=self._capacity)
        # What a replay is asked must be there: what a model is worth is no part of a recording.
        self.traits = replace(self.traits, declines=None)

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return all five parts, which are asked whatever they are worth."""
        suite = super().suite(evidence)
        reader: Any = suite.reader
        reader.traits = replace(reader.traits, declines=None)
        return suite

    def _capacity(self, request: RouteRequest) -> int:
        assert self._fits is not None
        capacity = self._fits(request)
        self._append({"method": "capacity", "request": request_json(request), "answer": capacity})
        return capacity

    async def through(self, method: str, part: Any, request: Any) -> Any:
        line: dict[str, Any] = {"method": method, "request": request_json(request)}
        try:
            answer = await getattr(part, method)(request)
        except Exception as exc:
            self._append({**line, "error": str(exc), "kind": type(exc).__name__})
            raise
        self._append({**line, "answer": answer_json(method, answer)})
        return answer

    def _append(self, line: dict[str, Any]) -> None:
        traits = {"method": "traits", "request": {}, "answer": _traits_json(self.parts)}
        self._file.append(*([] if self._started else [traits]), line)
        self._started = True


class ReplayedRouter(WrappedPart):
    """Answers as a recording does; a request asked again gets the next of its answers, at last the last again.

    Raises:
        UserError: there is no such file, it is no recording, or a request is not in it; a run stops there.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(self, self._replay)
        self._traits: dict[str, Traits] = {}
        """Of the parts that were recorded, by their name in a suite."""
        self._lines = RecordedLines(path, self._key_of_line)
        self.path = self._lines.path
        self.traits = self._traits.get("router", self.traits)

    def _key_of_line(self, line: Any) -> str:
        if line["method"] == "traits":
            self._traits = {name: self._traits_of(stored) for name, stored in line["answer"].items()}
        return key_of(line["method"], line["request"])

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return all five parts, each from the recording."""
        parts = {name: copy.copy(self) for name in ("reader", "tool_caller", "composer", "describer")}
        for name, part in parts.items():
            part.traits = self._traits.get(name, Traits(any_loop=True))
        return Suite(self, **parts)

    def _traits_of(self, stored: Mapping[str, bool]) -> Traits:
        return Traits(
            any_loop=True,
            follows_evidence=stored["follows_evidence"],
            by_rules=stored["by_rules"],
            describes_many=stored["describes_many"],
            by_passages=stored.get("by_passages", False),
            gives_probabilities=stored.get("gives_probabilities", False),
            capacity=self._capacity if stored["capacity"] else None,
        )

    def _capacity(self, request: RouteRequest) -> int:
        return int(self._next("capacity", request)["answer"])

    async def _replay(self, method: str, part: Any, request: Any) -> Any:
        line = self._next(method, request)
        if "error" in line:
            raise _error(line["kind"], line["error"])
        return answer_from(method, line["answer"])

    def _next(self, method: str, request: Any) -> Any:
        line = self._lines.next(key_of(method, json.loads(json.dumps(request_json(request)))))
        if line is None:
            raise UserError(f"a request to {method} is not in {str(self.path)!r}: record the run again")
        return line


def _traits_json(parts: Suite) -> dict[str, dict[str, bool]]:
    """Return what a replay says of itself as the recorded parts did; that no model is asked is another matter."""
    said = {part.name: getattr(parts, part.name).traits for part in fields(Suite)}
    return {
        name: {
            "follows_evidence": traits.follows_evidence,
            "by_rules": traits.by_rules,
            "describes_many": traits.describes_many,
            "by_passages": traits.by_passages,
            "gives_probabilities": traits.gives_probabilities,
            "capacity": traits.capacity is not None,
        }
        for name, traits in said.items()
    }


def _error(kind: str, message: str) -> MetatreeError:
    error_type = getattr(errors, kind, None)
    if isinstance(error_type, type) and issubclass(error_type, TransientError | BadModelAnswer | UserError):
        return error_type(message)
    return BadModelAnswer(message)
