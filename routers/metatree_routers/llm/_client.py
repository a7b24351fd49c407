"""The openai SDK's client of one event loop: how it is opened, and how one completion is asked for.

Importing this module loads the SDK, so the connection imports it when a model is first asked.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any

import httpx2
from openai import AsyncAPIResponse, AsyncOpenAI, DefaultAioHttpClient
from openai.types.chat import ChatCompletion
from pydantic import ValidationError

from metatree_routers.llm._settings import Settings
from metatree_routers.llm._stagger import turn_of_call

PATH = "/chat/completions"


class Client(AsyncOpenAI):
    """The SDK's client, which makes address and headers of a request to `PATH` once, since they never change.

    The SDK makes them for each request, in half the time of a call. Its own client for Azure takes the same method.
    """

    _first: httpx2.Request | None = None

    def _build_request(self, options: Any, **how: Any) -> httpx2.Request:
        if self._first is None or options.url != PATH:
            return self._built(options, **how)
        try:
            content = json.dumps(options.json_data, **_AS_THE_SDK_WRITES).encode()
        except TypeError:  # there are types that the SDK can write besides
            return self._built(options, **how)
        # What is given as content has its headers read and made again.
        headers = self._first.headers.copy()
        headers["content-length"] = str(len(content))
        request = httpx2.Request(
            self._first.method,
            self._first.url,
            headers=headers,
            cookies=self._client.cookies,
            stream=httpx2.ByteStream(content),
            extensions=self._first.extensions,
        )
        request.read()
        return request

    def _built(self, options: Any, **how: Any) -> httpx2.Request:
        request = super()._build_request(options, **how)
        if options.url == PATH and "cookie" not in request.headers:
            self._first = request
        return request


_AS_THE_SDK_WRITES: Any = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}


def open_client(
    settings: Settings,
    *,
    timeout_s: float,
    connections: int,
    certificates: ssl.SSLContext,
    transport: httpx2.AsyncBaseTransport | None,
) -> Client:
    """Return a client for the running loop, which must be closed there.

    Args:
        connections: how many are kept open for the next calls.
        transport: what sends requests instead of the network.
    """
    options: dict[str, Any] = {}
    if transport is not None:
        for_loop = getattr(transport, "for_loop", None)
        options["transport"] = for_loop() if for_loop is not None else transport
    # Over aiohttp a call takes two thirds of the work that it takes over httpcore, which looks through all of its
    # connections for each request.
    http = DefaultAioHttpClient(
        timeout=timeout_s,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=connections),
        verify=certificates,
        event_hooks={"request": [_tell_turn]},
        **options,
    )
    address = httpx2.URL(settings.base_url)
    return Client(
        api_key=settings.api_key,
        # Left in the address, what comes after `?` would stand before the path of each request.
        base_url=address.copy_with(query=None),
        default_query=dict(address.params),
        max_retries=0,
        timeout=timeout_s,
        http_client=http,
    )


async def complete(client: Client, body: Mapping[str, Any]) -> ChatCompletion:
    """Send a body and return the completion; what is none comes as the SDK reads it.

    Raises:
        openai.OpenAIError: as the SDK says.
        ValueError: what came is no JSON, under a header that says it is.
    """
    # `chat.completions.create` looks through the whole prompt for types to transform, in more time than all else
    # together; the body is plain JSON here. What is not said of the options would be copied deeply for each request.
    response = await client.post(
        PATH,
        body=body,
        cast_to=AsyncAPIResponse[ChatCompletion],
        options={"headers": {}, "max_retries": 0, "timeout": client.timeout},
    )
    try:
        return ChatCompletion.model_validate_json(response.http_response.content)
    except ValidationError:  # the SDK takes what is not a completion to the letter, too
        return await response.parse()


async def _tell_turn(_: httpx2.Request) -> None:
    """Let the next call make its request when this one, which is made, first waits."""
    turn = turn_of_call.get()
    if turn is not None:
        turn.end_when_waiting()
