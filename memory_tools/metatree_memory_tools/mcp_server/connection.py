"""One session with a server, on an event loop of its own, so that any thread and any loop may use it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from metatree._util.secret_text import masked
from metatree.errors import FetchFailed, MetatreeError, MissingExtra
from metatree_memory_tools.mcp_server._stdio import TOO_LONG, StdioServer
from metatree_memory_tools.mcp_server.address import ServerAddress
from metatree_memory_tools.web.addresses import AddressRules

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

T = TypeVar("T")

START_S = 60.0
"""How long a server may take to start and to answer for the first time; package runners download at first."""
_CLOSE_S = 10.0
_MOST_ENTRIES = 10_000
_MOST_PAGES = 1_000
_MOST_CHARS = 32_000_000
"""Of a listing, as JSON: two messages of the largest size."""
_LAST_CHARS = 500
_CLOSED = "Connection closed"
"""What the SDK says to those that wait for an answer when a session ends."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What a server says of itself."""

    name: str
    instructions: str
    tools: tuple[Any, ...]
    """`mcp.types.Tool` each."""
    resources: tuple[Any, ...]
    templates: tuple[Any, ...]
    left_out: int
    """Entries beyond what is taken in."""


class CallNotMade(FetchFailed):
    """The server never got a call: it can be made again."""


class CallUnanswered(FetchFailed):
    """The server got a call and gave no answer: it may have been made."""


class AnswerTooLong(FetchFailed):
    """The server made a call, and its answer is longer than what is read."""


class ServerConnection:
    """A session that is open until `close`.

    Args:
        address: where the server is, or how it is started.
        rules: what an address may be; None for public ones. The address itself was named by the user, so that it may
            be private; nothing that it redirects to may.
        start_s: how long it may take until it is ready.
        tools_changed: called, in a thread of the session, when the server says that its tools are others now.
        name: what it is called in errors; its address or its program when empty.

    Raises:
        FetchFailed: it could not be started or reached; with the last words on its standard error.
        MissingExtra: the package `mcp` is not installed.
    """

    def __init__(
        self,
        address: ServerAddress,
        *,
        rules: AddressRules | None = None,
        start_s: float = START_S,
        tools_changed: Callable[[], None] | None = None,
        name: str = "",
    ) -> None:
        try:
            import mcp  # noqa: F401
        except ImportError as exc:
            raise MissingExtra("mcp", what="an MCP server as a source") from exc
        self._address = address
        self._rules = rules or AddressRules()
        self._loop = asyncio.new_event_loop()
        self._client: Client
        self._ready: Future[None] = Future()
        self._stop = asyncio.Event()
        self._ended = threading.Event()
        self._broken = False
        self._process: StdioServer | None = None
        self._tools_changed = tools_changed
        self._name = name or address.url or address.command[0]
        threading.Thread(target=self._work, name="metatree-mcp", daemon=True).start()
        try:
            self._ready.result(start_s)
        except TimeoutError as exc:
            late = self._failed(f"gave no answer within {start_s:g} s")
            self.close()
            raise late from exc
        except BaseException as exc:
            failure = self._failed(f"cannot be used: {_reason(exc)}")
            self.close()
            if isinstance(exc, MetatreeError) or not isinstance(exc, Exception):
                raise
            raise failure from exc

    @property
    def usable(self) -> bool:
        """Whether the session is still open."""
        return not (self._ended.is_set() or self._broken)

    def close(self) -> None:
        """End the session, and the server when it was started for it."""
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._ended.wait(_CLOSE_S)

    def listing(self, *, seconds: float = START_S, resources: bool = True) -> ToolListing:
        """Ask for all tools and resources, or for the tools alone.

        Raises:
            FetchFailed: it did not answer.
        """
        return self._ask(partial(self._listing, resources), seconds, "list its tools")

    def call(self, tool: str, arguments: dict[str, Any], *, seconds: float) -> str:
        """Call a tool and return its result as text.

        Raises:
            FetchFailed: the tool says that it failed, or did not answer in time.
        """

        async def call() -> str:
            result = self._given(tool, await self._called(tool, arguments))
            text = result_text(result)
            if result.is_error:
                raise FetchFailed(f"{tool!r} of {self._name!r} failed: {text}", url=self._address.url)
            return text

        return self._ask(call, seconds, f"call {tool!r}")

    async def result(self, tool: str, arguments: dict[str, Any], *, seconds: float) -> CallToolResult:
        """Call a tool and return all that it gives, errors of its own too, from any event loop.

        What it gives is not held against its output schema: it has happened, whatever form it has.

        Raises:
            CallNotMade: the server is gone, so that it never got the call.
            CallUnanswered: it may have made the call, and nobody knows.
            FetchFailed: the server refuses the call.
        """
        from mcp import MCPError

        async def call() -> Any:
            async with asyncio.timeout(seconds):
                return await self._called(tool, arguments)

        if not self.usable:
            raise CallNotMade(str(self._failed("is no longer there")), url=self._address.url)
        try:
            result = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))
        except TimeoutError as exc:
            late = self._failed(f"gave no answer to {tool!r} within {seconds:g} s")
            raise CallUnanswered(str(late), url=self._address.url) from exc
        except MCPError as exc:
            if _is_gone(exc):
                self._broken = True
                gone = self._failed(f"ended before it answered {tool!r}")
                raise CallUnanswered(str(gone), url=self._address.url) from exc
            if exc.error.code == TOO_LONG:
                raise AnswerTooLong(f"{tool!r} was called, and {exc}", url=self._address.url) from exc
            raise FetchFailed(
                f"{self._name!r} refuses to call {tool!r}: {exc}", url=self._address.url
            ) from exc
        except Exception as exc:
            self._broken = self._broken or not self.usable
            unclear = self._failed(f"answered {tool!r} with what is no result: {_reason(exc)[:300]}")
            raise CallUnanswered(str(unclear), url=self._address.url) from exc
        return self._given(tool, result)

    async def _called(self, tool: str, arguments: dict[str, Any]) -> object:
        """Call a tool, and give what comes back as it is.

        Not by `Client.call_tool`, which holds it against the schema that the server gave for it: an expression in that
        may take for ever, and nothing ends it.
        """
        from mcp.types import CallToolRequest, CallToolRequestParams

        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        return await self._client.session.send_request(request, _result_form())

    def _given(self, tool: str, answer: object) -> CallToolResult:
        from mcp.types import CallToolResult

        if isinstance(answer, CallToolResult):
            return answer
        raise FetchFailed(
            f"{tool!r} of {self._name!r} asks for input, which is not given", url=self._address.url
        )

    def read(self, uri: str, *, seconds: float) -> str:
        """Return the text of a resource; of one that is no text, what it is.

        Raises:
            FetchFailed: there is none, or it did not answer in time.
        """

        async def read() -> str:
            result = await self._client.read_resource(uri)
            return "\n\n".join(_content_text(each) for each in result.contents)

        return self._ask(read, seconds, f"read {uri!r}")

    def _ask(self, what: Callable[[], Awaitable[T]], seconds: float, doing: str) -> T:
        async def timed() -> T:
            async with asyncio.timeout(seconds):
                return await what()

        if not self.usable:
            raise self._failed("is no longer there")
        future = asyncio.run_coroutine_threadsafe(timed(), self._loop)
        try:
            return future.result(seconds + _CLOSE_S)
        except MetatreeError:
            raise
        except TimeoutError as exc:
            future.cancel()
            raise self._failed(f"did not {doing} within {seconds:g} s") from exc
        except BaseException as exc:
            future.cancel()
            if not isinstance(exc, Exception):
                raise
            self._broken = self._broken or _is_gone(exc)
            raise self._failed(f"could not {doing}: {_reason(exc)}") from exc

    async def _listing(self, with_resources: bool) -> ToolListing:
        client, left_out = self._client, 0
        can = client.server_capabilities
        tools, beyond = await _all(client.list_tools, "tools") if can.tools else ([], 0)
        left_out += beyond
        with_resources = with_resources and can.resources is not None
        resources, beyond = await _all(client.list_resources, "resources") if with_resources else ([], 0)
        left_out += beyond
        templates: list[Any] = []
        if with_resources:
            with suppress(Exception):  # few servers have them, and some do not know the question
                templates, _ = await _all(client.list_resource_templates, "resource_templates")
        info = client.server_info
        name = "" if info is None else info.title or info.name
        return ToolListing(
            name, client.instructions or "", tuple(tools), tuple(resources), tuple(templates), left_out
        )

    def _work(self) -> None:
        try:
            self._loop.run_until_complete(self._session())
        except BaseException as exc:
            if not self._ready.done():
                self._ready.set_exception(exc)
        finally:
            self._ended.set()
            try:
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            finally:
                self._loop.close()

    async def _session(self) -> None:
        from mcp import Client

        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            client = Client(transport, message_handler=self._on_message)
            starting = asyncio.create_task(stack.enter_async_context(client))
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if starting.done() and starting.exception() is not None:
                stopping.cancel()
            if not starting.done():
                starting.cancel()
                await asyncio.wait([starting])
                return
            self._client = starting.result()
            self._ready.set_result(None)
            listening = asyncio.create_task(self._listen())
            await stopping
            listening.cancel()
            await asyncio.wait([listening])

    async def _on_message(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification

        if self._tools_changed is not None and isinstance(message, ToolListChangedNotification):
            self._tools_changed()

    async def _listen(self) -> None:
        """Hear of changes from a server of the protocol of 2026, which tells of them in a stream of their own."""
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS

        can = self._client.server_capabilities.tools
        if self._tools_changed is None or not (can and can.list_changed):
            return
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            with suppress(
                Exception
            ):  # a server that ends the stream is asked for its tools when it starts again
                async with self._client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._tools_changed()

    async def _transport(self, stack: AsyncExitStack) -> Any:
        address = self._address
        if address.command:
            self._process = StdioServer(
                address.command, address.filled(address.environment), address.start_folder
            )
            return self._process.transport()
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from metatree_memory_tools.web.transport import GuardedTransport

        rules = self._rules.naming(address.url)
        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                transport=GuardedTransport(rules),
                headers=address.filled(address.headers),
                timeout=httpx2.Timeout(30.0, read=300.0),
                trust_env=False,
            )
        )
        return streamable_http_client(address.url, http_client=client)

    def _failed(self, what: str) -> FetchFailed:
        words = "" if self._process is None else self._process.last_words
        last = " ".join(masked(words)[0][-_LAST_CHARS:].split())
        garbage = 0 if self._process is None else self._process.garbage
        notes = [
            what,
            *(
                [f"lines that it wrote to standard output and that are no messages: {garbage}"]
                if garbage
                else []
            ),
            *([f"it said last: {last}"] if last else []),
        ]
        return FetchFailed(f"the MCP server {self._name!r} {'; '.join(notes)}", url=self._address.url)


async def _all(ask: Callable[..., Awaitable[Any]], name: str) -> tuple[list[Any], int]:
    """Return the entries of all pages, and how many are left out; a server that never ends is cut off."""
    items: list[Any] = []
    cursor, chars = None, 0
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        entries = getattr(page, name)
        chars += len(page.model_dump_json())
        if chars > _MOST_CHARS:
            return items, len(entries)
        items += entries
        if not page.next_cursor or page.next_cursor == cursor or len(items) > _MOST_ENTRIES:
            break
        cursor = page.next_cursor
    return items[:_MOST_ENTRIES], max(0, len(items) - _MOST_ENTRIES)


def result_text(result: Any) -> str:
    """Return what a tool gave as text: its texts, what its other parts are, or its structure as JSON."""
    parts = [_content_text(part) for part in result.content]
    if not any(parts) and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False, indent=1)
    return "\n\n".join(part for part in parts if part)


def _content_text(part: Any) -> str:
    # The parts are classes of the SDK without a common one, and a server may send kinds that come after it.
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    resource = getattr(part, "resource", None)
    if resource is not None:
        return _content_text(resource)
    data = getattr(part, "data", None) or getattr(part, "blob", None)
    if data is not None:
        return f"[{getattr(part, 'mime_type', None) or 'data'}, about {len(data) * 3 // 4:,} bytes]"
    uri = getattr(part, "uri", None)
    return f"{getattr(part, 'title', None) or getattr(part, 'name', '')}: {uri}" if uri else ""


def _is_gone(exc: Exception) -> bool:
    """Whether a failure means that the session is of no more use; an error that the server answered does not.

    The SDK ends what waits for an answer with a code that servers give to errors of their own too (-32000), so its
    message is looked at.
    """
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return not isinstance(exc, MCPError) or (exc.error.code, exc.error.message) == (
        CONNECTION_CLOSED,
        _CLOSED,
    )


@lru_cache(maxsize=1)
def _result_form() -> Any:
    """Return what reads the result of a call; it takes as long to make as a call."""
    from mcp.types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


def _reason(exc: BaseException) -> str:
    """Return what went wrong, out of the groups in which tasks wrap it."""
    from pydantic import ValidationError

    while isinstance(exc, BaseExceptionGroup) and exc.exceptions:
        exc = exc.exceptions[0]
    if isinstance(exc, ValidationError):  # its own words end in an address of its manual
        first = exc.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(exc) or type(exc).__name__
