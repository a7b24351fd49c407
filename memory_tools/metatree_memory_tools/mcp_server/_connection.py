"""One session with a server, on an event loop of its own, so that any thread and any loop may use it."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from metatree.errors import FetchFailed, MetatreeError, MissingExtra
from metatree_memory_tools.mcp_server._address import ServerAddress
from metatree_memory_tools.web.addresses import AddressRules

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")

START_S = 60.0
"""How long a server may take to start and to answer for the first time; package runners download at first."""
_CLOSE_S = 10.0
_MOST_ENTRIES = 10_000
_MOST_PAGES = 1_000
_LAST_CHARS = 500


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


class ServerConnection:
    """A session that is open until `close`.

    Args:
        address: where the server is, or how it is started.
        rules: what an address may be; None for public ones. The address itself was named by the user, so that it may
            be private; nothing that it redirects to may.
        start_s: how long it may take until it is ready.

    Raises:
        FetchFailed: it could not be started or reached; with the last words on its standard error.
        MissingExtra: the package `mcp` is not installed.
    """

    def __init__(
        self, address: ServerAddress, *, rules: AddressRules | None = None, start_s: float = START_S
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
        errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - `close` does
        self._error_output = cast(TextIO, errors)
        self._name = address.url or address.command[0]
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
        if self._ended.is_set():
            self._error_output.close()

    def listing(self, *, seconds: float = START_S) -> ToolListing:
        """Ask for all tools and resources.

        Raises:
            FetchFailed: it did not answer.
        """
        return self._ask(self._listing, seconds, "list its tools")

    def call(self, tool: str, arguments: dict[str, Any], *, seconds: float) -> str:
        """Call a tool and return its result as text.

        Raises:
            FetchFailed: the tool says that it failed, or did not answer in time.
        """

        async def call() -> str:
            result = await self._client.call_tool(tool, arguments)
            text = result_text(result)
            if result.is_error:
                raise FetchFailed(f"{tool!r} of {self._name!r} failed: {text}", url=self._address.url)
            return text

        return self._ask(call, seconds, f"call {tool!r}")

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

    async def _listing(self) -> ToolListing:
        client, left_out = self._client, 0
        can = client.server_capabilities
        tools, beyond = await _all(client.list_tools, "tools") if can.tools else ([], 0)
        left_out += beyond
        resources, beyond = await _all(client.list_resources, "resources") if can.resources else ([], 0)
        left_out += beyond
        templates: list[Any] = []
        if can.resources:
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
            starting = asyncio.create_task(stack.enter_async_context(Client(transport)))
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                await asyncio.wait([starting])
                return
            self._client = starting.result()
            self._ready.set_result(None)
            await stopping

    async def _transport(self, stack: AsyncExitStack) -> Any:
        address = self._address
        if address.command:
            from mcp import StdioServerParameters
            from mcp.client.stdio import stdio_client

            command, *arguments = address.command
            parameters = StdioServerParameters(
                command=command,
                args=arguments,
                env=address.filled(address.environment),
                cwd=address.folder,
                encoding_error_handler="replace",
            )
            return stdio_client(parameters, errlog=self._error_output)
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
        last = ""
        if self._address.command and not self._error_output.closed:
            self._error_output.seek(0)
            last = " ".join(self._error_output.read()[-_LAST_CHARS:].split())
        return FetchFailed(
            f"the MCP server {self._name!r} {what}{f'; it said last: {last}' if last else ''}",
            url=self._address.url,
        )


async def _all(ask: Callable[..., Awaitable[Any]], name: str) -> tuple[list[Any], int]:
    """Return the entries of all pages, and how many are left out; a server that never ends is cut off."""
    items: list[Any] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        items += getattr(page, name)
        cursor = page.next_cursor
        if not cursor or len(items) > _MOST_ENTRIES:
            break
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
    """Whether a failure means that the session is of no more use; an error that the server answered does not."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return not isinstance(exc, MCPError) or exc.error.code == CONNECTION_CLOSED


def _reason(exc: BaseException) -> str:
    """Return what went wrong, out of the groups in which tasks wrap it."""
    while isinstance(exc, BaseExceptionGroup) and exc.exceptions:
        exc = exc.exceptions[0]
    return str(exc) or type(exc).__name__
