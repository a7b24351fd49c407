"""The servers behind a gateway: started when first needed, stopped when idle, started again after a crash.

Each is on its own: one that hangs, floods or does not start keeps no other waiting.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatree._util.links import real
from metatree._util.threads import in_thread
from metatree.errors import MetatreeError, TransientError, UserError
from metatree.node import Node
from metatree.trees.sources import is_path, public_location
from metatree_agents.gateway._results import without_texts
from metatree_agents.gateway.servers_file import ServerEntry

if TYPE_CHECKING:
    from metatree_memory_tools.mcp_server.connection import ServerConnection

    from metatree.tools.tool import Tool
    from metatree.trees.source_types import SourceRef
    from metatree.trees.tree import Tree

FIRST_PAUSE_S = 1.0
MOST_PAUSE_S = 60.0
"""Between two starts of a server that fails, at first and at most; doubled each time."""
_RELIST_S = 1.0
_MOST_RELIST_S = 60.0
"""How long a server that says that its tools have changed is not asked for them again: doubled each time that it says
so at once again, so that one that always does keeps nobody busy."""
_log = logging.getLogger("metatree")


@dataclass(frozen=True, slots=True)
class Definition:
    """What a server says of one tool; JSON."""

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    read_only: bool
    """Whether it says that it changes nothing."""
    repeatable: bool
    """Whether it says that calling it twice is as calling it once."""

    @property
    def version(self) -> str:
        """Another one for another definition."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ToolList:
    """What a server offers; JSON."""

    title: str
    instructions: str
    tools: tuple[Definition, ...]
    left_out: int = 0
    """Tools beyond what is taken in."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> ToolList:
        """Read what `asdict` gave."""
        return cls(**{**data, "tools": tuple(Definition(**each) for each in data["tools"])})


class NotMade(MetatreeError):
    """A call never reached its server; it can be made again."""


class Unanswered(MetatreeError):
    """A call reached its server, which gave no answer: it may have been made."""


class Answered(MetatreeError):
    """A call was made, and its answer cannot be had."""


class Upstream(ABC):
    """One server.

    Args:
        entry: what it is.
        listed: called on the loop with each new listing.
    """

    def __init__(self, entry: ServerEntry, listed: Callable[[ToolList], Awaitable[None]]) -> None:
        self.entry = entry
        self.problem = ""
        """Why it could not be used the last time; empty when it could."""
        self._listed = listed

    @property
    def running(self) -> bool:
        """Whether a process or a connection is open."""
        return False

    @abstractmethod
    async def ready(self) -> None:
        """Have it started and its tools listed.

        Raises:
            TransientError: it cannot be used now.
        """

    @abstractmethod
    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its result as the protocol has it, in JSON.

        Raises:
            NotMade: it did not get the call.
            Unanswered: nobody knows whether it made the call.
            Answered: it made the call, and its answer is lost.
            MetatreeError: it refuses the call.
        """

    @abstractmethod
    async def close(self) -> None:
        """End it."""


class McpUpstream(Upstream):
    """A server of the Model Context Protocol.

    Args:
        entry: what it is.
        listed: called on the loop with each new listing.
        idle_s: how long it stays open without a call.
    """

    def __init__(
        self, entry: ServerEntry, listed: Callable[[ToolList], Awaitable[None]], *, idle_s: float
    ) -> None:
        super().__init__(entry, listed)
        self._idle_s = idle_s
        self._lock = asyncio.Lock()
        self._connection: ServerConnection | None = None
        self._calls = 0
        self._used = 0.0
        self._failures = 0
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._changed = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        return self._connection is not None and self._connection.usable

    async def ready(self) -> None:
        await self._open()
        self._rest()

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from metatree_memory_tools.mcp_server.connection import AnswerTooLong, CallNotMade, CallUnanswered

        self._calls += 1
        try:
            try:
                connection = await self._open()
            except TransientError as exc:
                raise NotMade(str(exc)) from exc
            try:
                result = await connection.result(tool, arguments, seconds=self.entry.seconds)
            except CallNotMade as exc:
                raise NotMade(str(exc)) from exc
            except CallUnanswered as exc:
                raise Unanswered(str(exc)) from exc
            except AnswerTooLong as exc:
                raise Answered(str(exc)) from exc
            self._failures = 0
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)
        finally:
            self._calls -= 1
            self._rest()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await in_thread(connection.close)

    async def _open(self) -> ServerConnection:
        """Return an open session whose tools were listed since it began."""
        connection = self._connection
        if connection is not None and connection.usable:
            return connection
        async with self._lock:
            connection = self._connection
            if connection is not None and connection.usable:
                return connection
            if connection is not None:  # it crashed
                self._connection = None
                self._spawn(in_thread(connection.close))
            return await self._start()

    async def _start(self) -> ServerConnection:
        wait = self._not_before - time.monotonic()
        if wait > 0:
            self.problem = self.problem or f"the MCP server {self.entry.name!r} ends again and again"
            raise TransientError(
                f"{self.problem}; it is started again in {wait:.0f} s at the earliest", retry_after_s=wait
            )
        # The first start after a crash is made at once; from the second failure on there is a pause before each.
        self._failures += 1
        pause = min(FIRST_PAUSE_S * 2 ** (self._failures - 2), MOST_PAUSE_S) if self._failures > 1 else 0.0
        self._not_before = time.monotonic() + pause
        connection = None
        try:
            connection = await in_thread(self._connected, changed=self._on_change(asyncio.get_running_loop()))
            listing = await self._asked_for_tools(connection)
        except MetatreeError as exc:
            if connection is not None:
                self._spawn(in_thread(connection.close))
            self.problem = without_texts(str(exc), self.entry.secrets)
            self._not_before = time.monotonic() + min(FIRST_PAUSE_S * 2 ** (self._failures - 1), MOST_PAUSE_S)
            raise TransientError(self.problem, retry_after_s=FIRST_PAUSE_S) from exc
        try:
            await self._listed(listing)
        except BaseException:
            self._spawn(in_thread(connection.close))
            raise
        self._connection, self.problem = connection, ""  # not before its tools are known
        return connection

    async def _asked_for_tools(self, connection: ServerConnection) -> ToolList:
        """Ask for the tools alone: nothing here uses resources, and some servers fail or take long to list theirs."""
        ask = partial(connection.listing, seconds=self.entry.start_seconds, resources=False)
        return _listing(await in_thread(ask))

    def _connected(self, changed: Callable[[], None]) -> ServerConnection:
        from metatree_memory_tools.mcp_server.address import ServerAddress
        from metatree_memory_tools.mcp_server.connection import ServerConnection

        settings = self.entry.settings
        command = (
            (str(settings["command"]), *map(str, settings.get("args") or ()))
            if settings.get("command")
            else ()
        )
        address = ServerAddress(
            command,
            "" if command else str(settings["url"]),
            {name: str(value) for name, value in (settings.get("env") or {}).items()},
            {name: str(value) for name, value in (settings.get("headers") or {}).items()},
            settings.get("cwd"),
            as_given=True,
        )
        return ServerConnection(
            address, start_s=self.entry.start_seconds, tools_changed=changed, name=self.entry.name
        )

    def _rest(self) -> None:
        """Note that it was used, and end it later unless it is used again."""
        self._used = time.monotonic()
        if self._timer is None and self._connection is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._look)

    def _look(self) -> None:
        self._timer = None
        left = self._used + self._idle_s - time.monotonic()
        if self._connection is None:
            return
        if self._calls or left > 0:
            self._timer = asyncio.get_running_loop().call_later(max(left, 0.05), self._look)
            return
        connection, self._connection, self._failures = self._connection, None, 0
        self._spawn(in_thread(connection.close))

    def _on_change(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        def changed() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._relist_soon)

        return changed

    def _relist_soon(self) -> None:
        self._changed = True
        if self._relisting is None or self._relisting.done():
            self._relisting = self._spawn(self._relist())

    async def _relist(self) -> None:
        pause = _RELIST_S
        while self._changed and (connection := self._connection) is not None and connection.usable:
            self._changed = False
            try:
                listing = await self._asked_for_tools(connection)
            except MetatreeError as exc:
                self.problem = without_texts(str(exc), self.entry.secrets)
                return
            await self._listed(listing)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MOST_RELIST_S)

    def _spawn(self, what: Awaitable[None]) -> asyncio.Task[None]:
        async def work() -> None:
            await what

        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class ToolsUpstream(Upstream):
    """Tools that run in this process: the operations of an OpenAPI description, or the tools of a plug-in.

    Args:
        entry: what it is.
        listed: called on the loop with each new listing.
        folder: where what is read for it is kept.
    """

    def __init__(
        self, entry: ServerEntry, listed: Callable[[ToolList], Awaitable[None]], *, folder: Path
    ) -> None:
        super().__init__(entry, listed)
        self._folder = real(folder)
        self._lock = asyncio.Lock()
        self._tools: dict[str, Tool] | None = None
        self._tree: Tree | None = None
        self._title = entry.name

    async def ready(self) -> None:
        async with self._lock:
            if self._tools is not None:
                return
            try:
                self._tools = await in_thread(self._made)
            except MetatreeError as exc:
                self.problem = without_texts(str(exc), self.entry.secrets)
                raise TransientError(
                    f"the tools of {self.entry.name!r} cannot be used: {self.problem}",
                    retry_after_s=FIRST_PAUSE_S,
                ) from exc
            self.problem = ""
            definitions = [
                Definition(
                    name,
                    tool.title,
                    tool.description,
                    dict(tool.spec.schema),
                    not tool.changes,
                    tool.is_repeatable,
                )
                for name, tool in self._tools.items()
            ]
            await self._listed(ToolList(self._title, "", tuple(definitions)))

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from metatree.durable import InDoubt
        from metatree.errors import ToolFailed

        try:
            await self.ready()
        except TransientError as exc:
            raise NotMade(str(exc)) from exc
        assert self._tools is not None
        function = self._tools[tool]
        try:
            made = await function.run(function.bound(arguments, {}))
        except InDoubt as exc:
            raise Unanswered(str(exc)) from exc
        except ToolFailed as exc:
            return {"content": [{"type": "text", "text": str(exc)}], "isError": True}
        text = made.content or made.description if isinstance(made, Node) else None
        if text is None:
            text = made if isinstance(made, str) else json.dumps(made, ensure_ascii=False, default=str)
        return {"content": [{"type": "text", "text": text}], "isError": False}

    async def close(self) -> None:
        if self._tree is not None:
            self._tree.close()

    def _made(self) -> dict[str, Tool]:
        if self.entry.kind == "plugin":
            return _plugin_tools(str(self.entry.settings["plugin"]))
        from metatree_memory_tools import build_tree
        from metatree_memory_tools.openapi.source import OpenApi

        from metatree.trees.source_types import SourceRef

        settings = self.entry.settings
        options = {
            name: settings[name]
            for name in ("server", "auth", "seconds", "allow", "allow_private")
            if name in settings
        }
        if real(self._folder) != self._folder:
            raise UserError(f"a link leads from {str(self._folder)!r} elsewhere now: start the gateway again")
        out = self._folder / f"openapi-{self.entry.identity[:16]}"
        before = _source_before(out)
        if before is not None:
            # The description may be a file of a clone, where a pull brings a link to one with other operations.
            place = real(Path(str(settings["openapi"]).removeprefix("openapi:")))
            if is_path(before) and place != Path(before.location):
                raise UserError(
                    f"its description was {before.location!r} and is a link to {str(place)!r} now: name that one in"
                    " the file of servers if it is meant"
                )
            # Or another server: the one that it had first is called, and none where it had none.
            if is_path(before):
                options.setdefault("server", before.options.get("server", ""))
        self._tree = build_tree(SourceRef(str(settings["openapi"]), options, "", "openapi"), out=out)
        (built,) = self._tree.sources()
        self._title = self._tree.get(".").title
        top = f"openapi:{built.mount}/" if built.mount else "openapi:"
        called = (  # part of what is permitted
            f"\nCalled at {public_location(str(server))}." if (server := built.options.get("server")) else ""
        )
        return {
            tool.id.removeprefix(top): replace(tool, description=f"{tool.description}{called}")
            for tool in _flat(OpenApi().tools_of(self._tree, built))
        }


def _source_before(place: Path) -> SourceRef | None:
    """Return what a tree of a description was built from; None for a new one."""
    from metatree.trees.tree import Tree

    try:
        with Tree.open(place) as tree:
            (source,) = tree.sources()
            return source
    except (MetatreeError, OSError, ValueError):
        return None


def _plugin_tools(name: str) -> dict[str, Tool]:
    """Return the tools of a plug-in that need no node and no tree."""
    from metatree import plugins
    from metatree.tools.tool import Tool, ToolGroup

    loaded = plugins.load(plugins.TOOLS, name)
    if not isinstance(loaded, Tool | ToolGroup | list | tuple):
        raise UserError(
            f"the plug-in {name!r} makes its tools for a tree: only tools by themselves can be mounted"
        )
    tools = {}
    for tool in _flat(loaded if isinstance(loaded, list | tuple) else [loaded]):
        if not tool.stands_alone:
            _log.warning("the tool %r of the plug-in %r works on a tree, and is left out", tool.id, name)
        else:
            tools[tool.id] = tool
    return tools


def _flat(entries: Sequence[Any]) -> list[Tool]:
    from metatree.tools.tool import ToolGroup

    return [
        tool
        for entry in entries
        for tool in (_flat(entry.tools) if isinstance(entry, ToolGroup) else [entry])
    ]


def _listing(listing: Any) -> ToolList:
    from metatree_memory_tools.schema_tool import usable_schema

    definitions = []
    for tool in listing.tools:
        hints = tool.annotations
        definitions.append(
            Definition(
                tool.name,
                tool.title or (hints.title if hints else None) or "",
                tool.description or "",
                usable_schema(tool.input_schema),
                hints is not None and hints.read_only_hint is True,
                hints is not None and hints.idempotent_hint is True,
            )
        )
    return ToolList(
        listing.name,
        listing.instructions,
        tuple(definitions),
        listing.left_out,
    )


def as_said(listing: ToolList, entry: ServerEntry) -> ToolList:
    """Return a listing with what the user says of the tools in the place of what the server says."""
    given = entry.settings.get("read_only", "hints")
    if given == "hints":
        return listing
    names = frozenset() if given == "none" else frozenset(given)
    return replace(
        listing, tools=tuple(replace(each, read_only=each.name in names) for each in listing.tools)
    )


def without_secrets_of(listing: ToolList, hidden: Sequence[str]) -> ToolList:
    """Return a listing without secrets: a tool with one in its name, by which it would be called, is left out."""
    named = [each for each in listing.tools if without_texts(each.name, hidden) == each.name]
    if len(named) < len(listing.tools):
        _log.warning("%d tools with a secret in their names are left out", len(listing.tools) - len(named))
    return replace(
        listing,
        title=without_texts(listing.title, hidden),
        instructions=without_texts(listing.instructions, hidden),
        tools=tuple(Definition(**without_texts(asdict(each), hidden)) for each in named),
    )


def upstream_of(
    entry: ServerEntry, listed: Callable[[ToolList], Awaitable[None]], *, idle_s: float, folder: Path
) -> Upstream:
    """Return the server of an entry; nothing is started."""
    if entry.kind == "mcp":
        return McpUpstream(entry, listed, idle_s=idle_s)
    return ToolsUpstream(entry, listed, folder=folder)
