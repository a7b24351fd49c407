"""Record the requests of a run with their answers, and replay them without a network.

A recording is a file of JSON lines. Headers of requests are never written, so keys and authorisation are not in it;
of an address only scheme, host and path are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from metatree.errors import UserError
from metatree_routers.wrappers.disk_cache import key_of
from metatree_routers.wrappers.recording_file import RecordedLines, RecordingFile

_KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms")


class Recording(httpx2.AsyncBaseTransport):
    """Passes requests on and appends each with its answer to a file; drops connections as they were dropped.

    Args:
        path: the file; appended to.
        inner: what really sends; None for the network.
    """

    def __init__(self, path: str | Path, inner: httpx2.AsyncBaseTransport | None = None) -> None:
        self._file = RecordingFile(path)
        self.path = self._file.path
        self._given = inner
        self._inner = inner

    def for_loop(self) -> Recording:
        """Return one for another event loop: connections belong to a loop, the file does not."""
        other = Recording(self.path, self._given)
        other._file = self._file
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
            self._file.append({**line, "dropped": type(exc).__name__})
            raise
        await response.aclose()
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        answer = {
            "status": response.status_code,
            "headers": headers,
            "text": content.decode("utf-8", "replace"),
        }
        self._file.append({**line, "answer": answer})
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()


class Replay(httpx2.AsyncBaseTransport):
    """Answers requests from a recording; a request asked again gets the next of its answers, at last the last again.

    Raises:
        UserError: there is no such file, it is no recording, or a request is not in it; a run stops there.
    """

    def __init__(self, path: str | Path) -> None:
        self._lines = RecordedLines(path, lambda line: _key(line["method"], line["url"], line["body"]))
        self.path = self._lines.path

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        line = self._lines.next(_key(request.method, _address(request.url), _json(await request.aread())))
        if line is None:
            raise UserError(f"a request is not in the recording {str(self.path)!r}: record the run again")
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
