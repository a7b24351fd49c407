"""Record what a router and its relatives are asked and answer, and replay it without them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from metatree import errors
from metatree.errors import BadModelAnswer, MetatreeError, TransientError, UserError
from metatree.protocols import Router, RouteRequest, Suite
from metatree_routers.wrappers._codec import answer_from, answer_json, request_json
from metatree_routers.wrappers.disk_cache import key_of
from metatree_routers.wrappers.wrapper import Part, Wrapper


class RecordedRouter(Wrapper):
    """Appends each request of a router and its parts with the answer, or the error, to a file of JSON lines.

    `metatree_routers.llm.Recording` does the same one level below, with the requests that reach a server.

    Args:
        inner: the router, with the parts it brings, or a suite.
        path: the file; appended to.
    """

    def __init__(self, inner: Router | Suite, path: str | Path) -> None:
        super().__init__(inner)
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()
        if hasattr(self.parts.router, "capacity"):
            self.capacity = self._capacity

    def _capacity(self, request: RouteRequest) -> int:
        found: int = self.parts.router.capacity(request)  # type: ignore[attr-defined]
        self._append({"method": "capacity", "request": request_json(request), "answer": found})
        return found

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
        text = json.dumps(line, ensure_ascii=False)
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text + "\n")


class ReplayedRouter(Part):
    """Answers as a recording does; a request asked again gets the next of its answers, at last the last again.

    Raises:
        UserError: there is no such file, it is no recording, or a request is not in it; a run stops there.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(None, self._replay)
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._lines: dict[str, list[dict[str, Any]]] = {}
        try:
            for text in filter(None, self.path.read_text(encoding="utf-8").split("\n")):
                line = json.loads(text)
                if line["method"] == "capacity":
                    self.capacity = self._capacity
                self._lines.setdefault(key_of(line["method"], line["request"]), []).append(line)
        except OSError as exc:
            raise UserError(f"the recording {str(path)!r} cannot be read: {exc}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise UserError(f"{str(path)!r} is not a recording: {exc}") from exc

    def suite(self) -> Suite:
        """Return all five parts, each from the recording."""
        return Suite(self, self, self, self, self)

    def _capacity(self, request: RouteRequest) -> int:
        return int(self._next("capacity", request)["answer"])

    async def _replay(self, method: str, part: Any, request: Any) -> Any:
        line = self._next(method, request)
        if "error" in line:
            raise _error(line["kind"], line["error"])
        return answer_from(method, line["answer"])

    def _next(self, method: str, request: Any) -> dict[str, Any]:
        key = key_of(method, json.loads(json.dumps(request_json(request))))
        with self._lock:
            lines = self._lines.get(key)
            if not lines:
                raise UserError(f"a request to {method} is not in {str(self.path)!r}: record the run again")
            return lines.pop(0) if len(lines) > 1 else lines[0]


def _error(kind: str, message: str) -> MetatreeError:
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, TransientError | BadModelAnswer | UserError):
        return found(message)
    return BadModelAnswer(message)
