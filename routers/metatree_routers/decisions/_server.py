"""One JSON server: requests with a bound on time and size, and metatree's errors for what comes back."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from metatree.durable import report_usage
from metatree.errors import BadModelAnswer, RouterUnavailable, UserError
from metatree.trees.text import encodable
from metatree_routers.llm.errors import (
    SERVER,
    BadKey,
    NotAModelServer,
    OutOfCredit,
    PromptTooLong,
    RequestRejected,
    UnknownModel,
    without_key,
)
from metatree_routers.wrappers.limiter import Limiter

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 1_000_000
"""Of an answer: 64 questions of 255 options take a tenth of it."""
_MESSAGE_CHARS = 200


class JsonServer:
    """Sends requests to one address; safe to share between searches, event loops and threads.

    Args:
        base_url: what the paths of requests are put behind.
        api_key: sent as a bearer token; '' for none.
        key_variable: the environment variable that a user would set the key in.
        timeout_s: for one request as a whole, however slowly it comes.
        concurrency: how many requests may be in progress at once.
        transport: what sends requests instead of the network.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        key_variable: str,
        timeout_s: float = 60.0,
        concurrency: int = 64,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = checked_address(base_url)
        self._key, self._key_variable = api_key, key_variable
        self._timeout_s, self._limiter, self._transport = timeout_s, Limiter(concurrency), transport
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, Any]] = WeakKeyDictionary()

    @property
    def public_url(self) -> str:
        """The address without a query, which may hold a key."""
        return urlsplit(self.base_url)._replace(query="", fragment="").geturl()

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a body and return the object that comes.

        Raises:
            BadModelAnswer: what comes is no JSON object, or longer than `MAX_BYTES`.
            RouterUnavailable: 429, 5xx, no answer in time, a dropped connection.
            UserError: the key, the model or the address is wrong.
            RequestRejected: the server will not take this request.
        """
        import httpx2

        place = f"{SERVER} at {self.public_url}"
        data = encodable(json.dumps(body, ensure_ascii=False, allow_nan=False)).encode()
        async with self._limiter.slot():
            client = await self._client()
            try:
                async with asyncio.timeout(self._timeout_s):
                    request = client.build_request("POST", _joined(self.base_url, path), content=data)
                    response = await client.send(request, stream=True)
                    try:
                        content = await _bounded(response)
                    finally:
                        await response.aclose()
            except TimeoutError:
                raise RouterUnavailable(f"{place} did not answer within {self._timeout_s:g} s") from None
            except (httpx2.HTTPError, httpx2.StreamError, OSError) as exc:
                raise RouterUnavailable(
                    f"{place} cannot be reached ({type(exc).__name__}: {_short(exc)}); see whether it runs there"
                ) from exc
        if response.status_code != 200:
            raise self._error(response.status_code, content, response.headers, place)
        try:
            said = json.loads(content)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise BadModelAnswer(f"{place} answered what is no JSON object")
        return said

    def _error(self, status: int, content: bytes, headers: Mapping[str, str], place: str) -> Exception:
        message = _message(content)
        message = without_key(message, self._key)
        answer = f"{place} answered {status}: {message}" if message else f"{place} answered {status}"
        if status in (401, 403):
            return BadKey(f"{answer}; check {self._key_variable} and what the key may do")
        if status == 402:
            return OutOfCredit(f"{answer}; add credit, or use another key")
        if status in (408, 409, 425, 429) or status >= 500:
            error = RouterUnavailable(answer, retry_after_s=_retry_after(headers))
            if error.retry_after_s:
                self._limiter.hold(error.retry_after_s)
            return error
        if status == 413 or "context" in message.casefold():
            return PromptTooLong(answer)
        if status == 404:
            if "model" in message.casefold():
                return UnknownModel(f"{answer}; see {self.public_url}/models")
            return NotAModelServer(f"{answer}; the address usually ends with /v1")
        return RequestRejected(answer, status=status)

    async def _client(self) -> httpx2.AsyncClient:
        """Return the client of the running loop; it is closed when the loop shuts its generators down."""
        loop = asyncio.get_running_loop()
        opened = self._clients.get(loop)
        if opened is None:
            generator = self._open()
            opened = self._clients.setdefault(loop, (await anext(generator), generator))
        client: httpx2.AsyncClient = opened[0]
        return client

    async def _open(self) -> AsyncIterator[httpx2.AsyncClient]:
        import httpx2

        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        client = httpx2.AsyncClient(
            headers=headers, timeout=self._timeout_s, transport=self._transport, follow_redirects=False
        )
        try:
            yield client
        finally:
            await client.aclose()


def checked_address(url: str) -> str:
    """Return an address of a server; raises `UserError` where it is none."""
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if "@" in parts.netloc:  # nothing of it is shown: what is a password here is anybody's guess
        raise UserError(
            "the address of the model server has a user name or a password before an @: take them out"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = parts._replace(query="", fragment="").geturl()
        raise UserError(f"{shown!r} is no address of a server: write it as http://localhost:8000/v1")
    return url


def from_environment(*names: str) -> str:
    """Return the first of these environment variables that says something; '' when none does."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def report_tokens(said: Mapping[str, Any], sent: int) -> None:
    """Report what a request used, as the server says, else as was sent."""
    usage = said.get("usage")
    usage = usage if isinstance(usage, dict) else {}

    def count(*names: str) -> int:
        return next(
            (value for name in names if type(value := usage.get(name)) is int and 0 <= value < 10**9), 0
        )

    report_usage(
        tokens_in=count("input_tokens", "prompt_tokens") or sent,
        tokens_out=count("output_tokens", "completion_tokens"),
    )


def _joined(base: str, path: str) -> str:
    parts = urlsplit(base)
    return parts._replace(path=parts.path.rstrip("/") + path).geturl()


async def _bounded(response: Any) -> bytes:
    chunks, size = list[bytes](), 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_BYTES:
            raise BadModelAnswer(f"{SERVER} answered more than {MAX_BYTES:,} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _message(content: bytes) -> str:
    try:
        said = json.loads(content[:20_000])
    except (ValueError, RecursionError):
        text = content[:_MESSAGE_CHARS].decode("utf-8", "replace")
        return "" if text.lstrip().startswith("<") else _short(text)
    inner = said.get("error", said) if isinstance(said, dict) else said
    if isinstance(inner, dict):
        inner = inner.get("message") or inner.get("detail") or ""
    return _short(inner)


def _short(text: object) -> str:
    said = " ".join(str(text).split())
    return said if len(said) <= _MESSAGE_CHARS else said[: _MESSAGE_CHARS - 1] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None
