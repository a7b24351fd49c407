"""Record the requests of a run with their answers, and replay them without a network.

A recording is a file of JSON lines. Headers of requests are never written, so keys and authorisation are not in it;
of an address only scheme, host and path are kept.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from metatree.errors import UserError
from metatree_routers.wrappers.disk_cache import key_of

_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms")


class Recording(httpx2.AsyncBaseTransport):
    """Passes requests on and appends each with its answer to a file; drops connections as they were dropped.

    Args:
        path: the file; appended to.
        inner: what really sends; None for the network.
    """

    def __init__(self, path: str | Path, inner: httpx2.AsyncBaseTransport | None = None) -> None:
        self.path = Path(path).expanduser()
        self._given = inner
        self._inner = inner
        self._lock = threading.Lock()

    def for_loop(self) -> Recording:
        """Return one for another event loop: connections belong to a loop, the file does not."""
        other = Recording(self.path, self._given)
        other._lock = self._lock
        return other

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._inner is None:
            self._inner = httpx2.AsyncHTTPTransport()
        body = _json(await request.aread())
        line: dict[str, Any] = {"method": request.method, "url": _address(request.url), "body": body}
        try:
            response = await self._inner.handle_async_request(request)
            content = await response.aread()
        except httpx2.TransportError as exc:
            self._append({**line, "dropped": type(exc).__name__})
            raise
        await response.aclose()
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        answer = {
            "status": response.status_code,
            "headers": headers,
            "text": content.decode("utf-8", "replace"),
        }
        self._append({**line, "answer": answer})
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()

    def _append(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False)
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text + "\n")


class Replay(httpx2.AsyncBaseTransport):
    """Answers requests from a recording; a request asked again gets the next of its answers, at last the last again.

    Raises:
        UserError: there is no such file, it is no recording, or a request is not in it; a run stops there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._answers: dict[str, list[dict[str, Any]]] = {}
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
            for line in map(json.loads, filter(None, lines)):
                self._answers.setdefault(_key(line["method"], line["url"], line["body"]), []).append(line)
        except OSError as exc:
            raise UserError(f"the recording {str(path)!r} cannot be read: {exc}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise UserError(f"{str(path)!r} is not a recording: {exc}") from exc

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        key = _key(request.method, _address(request.url), _json(await request.aread()))
        with self._lock:
            answers = self._answers.get(key)
            if not answers:
                raise UserError(f"a request is not in the recording {str(self.path)!r}: record the run again")
            line = answers.pop(0) if len(answers) > 1 else answers[0]
        if "dropped" in line:
            raise httpx2.ConnectError(f"dropped when it was recorded ({line['dropped']})", request=request)
        answer = line["answer"]
        return httpx2.Response(
            answer["status"], headers=answer["headers"], content=answer["text"].encode(), request=request
        )


def _key(method: str, url: str, body: Any) -> str:
    return key_of(method, urlsplit(url).path, body)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")


def _address(url: httpx2.URL) -> str:
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}{url.path}"
