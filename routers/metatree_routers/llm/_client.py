"""The openai SDK's client of one event loop: how it is opened, and how one completion is asked for.

Importing this module loads the SDK, so the connection imports it when a model is first asked.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httpx2
from openai import AsyncAPIResponse, AsyncOpenAI, DefaultAioHttpClient
from openai.types.chat import ChatCompletion
from pydantic import ValidationError

from metatree.errors import BadModelAnswer
from metatree_routers.llm._replay import Recording
from metatree_routers.llm._settings import ModelSettings
from metatree_routers.llm.errors import SERVER

MAX_BYTES: Final = 8_000_000
"""Of an answer; the SDK reads all of it before it looks at it."""
_MAX_INFLATION: Final = 1_000
"""How many times longer a compressed answer may become: nobody asked for it to be compressed."""


def open_client(
    settings: ModelSettings,
    *,
    timeout_s: float,
    connections: int,
    certificates: ssl.SSLContext,
    transport: httpx2.AsyncBaseTransport | None,
) -> AsyncOpenAI:
    """Return a client for the running loop, which must be closed there.

    Args:
        connections: how many are kept open for the next calls.
        transport: what sends requests instead of the network.
    """
    options: dict[str, Any] = {}
    if transport is not None:
        options["transport"] = transport.for_loop() if isinstance(transport, Recording) else transport
    # Over aiohttp, for which the SDK ships a transport. Lost: httpcore, which looks through all of its connections for
    # each request and takes a third more of the CPU of 64 searches side by side (1.26 s against 0.83 s).
    http = DefaultAioHttpClient(
        timeout=timeout_s,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=connections),
        verify=certificates,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_bound]},
        **options,
    )
    address = httpx2.URL(settings.base_url)
    return AsyncOpenAI(
        api_key=settings.api_key,
        # Left in the address, what comes after `?` would stand before the path of each request.
        base_url=address.copy_with(query=None),
        default_query=dict(address.params),
        max_retries=0,
        timeout=timeout_s,
        http_client=http,
    )


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer, as they come.

    Raises:
        BadModelAnswer: there are more than `most`.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._most:
                raise BadModelAnswer(f"{SERVER} answered more than {self._most:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Bound what is read of an answer, of any status, before the SDK reads it."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        most = MAX_BYTES // _MAX_INFLATION if response.headers.get("content-encoding") else MAX_BYTES
        response.stream = _BoundedStream(response.stream, most)


async def complete(client: AsyncOpenAI, body: Mapping[str, Any]) -> ChatCompletion:
    """Send a body and return the completion; what is none comes as the SDK reads it.

    Raises:
        openai.OpenAIError: as the SDK says.
        ValueError: what came is no JSON, under a header that says it is.
    """
    # `client.post` is the SDK's own way to ask for a route by its path. Lost: `chat.completions.create`, which looks
    # through the whole prompt for types to transform, where plain JSON has none: a routing call takes 2.8 ms of CPU
    # with it against 1.8 (bench_llm.py, pairs in one run), and 64 searches side by side 0.83 s against 0.58. Lost too:
    # address and headers made once for all requests, by overriding a private method of the SDK: 1.4 ms and 0.51 s.
    response = await client.post(
        "/chat/completions",
        body=body,
        cast_to=AsyncAPIResponse[ChatCompletion],
        # What is not said of the options would be copied deeply for each request.
        options={"headers": {}, "max_retries": 0, "timeout": client.timeout},
    )
    try:
        # The SDK constructs what comes, with whatever types it has; here a completion is one.
        return ChatCompletion.model_validate_json(response.http_response.content)
    except ValidationError:
        return await response.parse()
