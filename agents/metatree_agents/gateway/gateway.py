"""Many servers behind three calls: find a tool, call it, look around."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from metatree import Blackboard, Node, Tree
from metatree._util.cache_folder import xdg_folder
from metatree._util.private import private_folder
from metatree._util.secret_text import without_secrets
from metatree._util.threads import in_thread
from metatree.durable import InDoubt
from metatree.errors import BadModelAnswer, BrokenStore, MetatreeError, ToolFailed, UntrustedStore, UserError
from metatree.notes.permissions import Permissions
from metatree.tools.call_log import Call, CallLog, CallResult, call_of
from metatree.trees.layer import Layer
from metatree_agents.gateway._catalog import Catalog, Mounted, shown
from metatree_agents.gateway._names import plain_text
from metatree_agents.gateway._results import CHARS_A_TOKEN, Results, paged, without_texts
from metatree_agents.gateway._upstreams import (
    Answered,
    NotMade,
    ToolList,
    Unanswered,
    Upstream,
    as_said,
    upstream_of,
    without_secrets_of,
)
from metatree_agents.gateway.permission import Answer, Ask, Gate, PermissionQuestion, ToolPolicy
from metatree_agents.gateway.servers_file import ServerEntry, keyed_hash

MAX_TOKENS: Final = 4_000
IDLE_S: Final = 300.0
BOARD: Final = "gateway"
SECTION: Final = "tool_calls"
_LISTING: Final = "gateway:listing:"
_CHANGED: Final = "gateway:changed:"
_FIRST_LISTING_S: Final = 20.0
"""How long a first look at the tools waits for servers that have to be started for it."""
_AT_ONCE: Final = 4
"""So many servers are started at the same moment, where their tools are not known yet."""
_PAGE: Final = 50
_MOST_FOUND: Final = 20
_MOST_TRIES: Final = 3
_MOST_OPENINGS: Final = 20
_OPENING_S: Final = 0.1
_MOST_ON_BOARD: Final = 2_000
"""Characters of a result that the board shows."""
_MOST_ERROR: Final = 4_000
"""Characters of an error: a server words it, and it is not kept as a result is."""
_SHORT: Final = 50_000
"""Characters of a result that are looked through at once; a thread for it takes longer."""
_NOWHERE: Final = Node("", "")
_log = logging.getLogger("metatree")


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """Who calls, and how a person is asked in their name."""

    name: str = "an agent"
    session: str = field(default_factory=lambda: secrets.token_hex(6))
    ask: Ask | None = None


async def _nobody(_: object) -> None:
    return None


class _Refused(Exception):
    """A tool that changes nothing says that it failed; not to be remembered."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


def state_folder() -> Path:
    """Return where gateways of this user keep what they remember."""
    return xdg_folder("XDG_STATE_HOME", ".local/state") / "metatree" / "gateway"


def open_memory(path: Path) -> Tree:
    """Open the memory of gateways, or make it.

    Raises:
        UserError: it is not one, or somebody else's.
    """
    for attempt in range(_MOST_OPENINGS):
        try:
            return Tree.open(path) if path.exists() else _created(path)
        except (BrokenStore, UntrustedStore):
            raise
        except UserError:  # two gateways that start at the same moment both find none, and one makes it
            if attempt == _MOST_OPENINGS - 1:
                raise
            time.sleep(_OPENING_S)
    raise AssertionError


def _created(path: Path) -> Tree:
    private_folder(path.parent)
    return Tree.create(path, title="Gateway", description="What tools were called and what they gave.")


class Gateway:
    """The tools of several servers. Its calls may overlap; use it with `async with`.

    Args:
        entries: the servers.
        memory: where calls, permissions and long results are kept; several gateways may share one.
        policy: what may be called unasked.
        max_tokens: of what a call gives at once; a token is taken for three characters.
        idle_s: how long a server stays open without a call.
        parts: router and so on, as `search` takes them, for finding tools; the embedded ones when empty.
    """

    def __init__(
        self,
        entries: Sequence[ServerEntry],
        memory: Tree,
        *,
        policy: ToolPolicy | None = None,
        max_tokens: int = MAX_TOKENS,
        idle_s: float = IDLE_S,
        parts: Mapping[str, Any] | None = None,
    ) -> None:
        self.memory = memory
        self.catalog = Catalog(parts)
        self.gate = Gate(Permissions(memory.memory), policy or ToolPolicy(None))
        self._chars = max_tokens * CHARS_A_TOKEN
        self._results = Results(memory, max_tokens)
        self._log = CallLog(memory.memory)
        self._layer = Layer(memory.memory)
        self._board = Blackboard(memory, name=BOARD)
        self._entries = {entry.name: entry for entry in entries}
        folder = state_folder() if memory.path is None else memory.path.parent
        self._upstreams: dict[str, Upstream] = {
            entry.name: upstream_of(entry, partial(self._listed, entry), idle_s=idle_s, folder=folder)
            for entry in entries
        }
        self._hidden = tuple(
            sorted({secret for entry in entries for secret in entry.secrets}, key=len, reverse=True)
        )
        self._first: dict[str, asyncio.Task[None]] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._left_out: dict[str, int] = {}

    async def __aenter__(self) -> Gateway:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all servers; the memory stays open."""
        for task in self._first.values():
            task.cancel()
        if self._first:
            await asyncio.wait(self._first.values())
        await asyncio.gather(*(each.close() for each in self._upstreams.values()), return_exceptions=True)
        self.catalog.close()

    # what there is

    async def known(self, wait_s: float = _FIRST_LISTING_S) -> list[str]:
        """Have the tools of all servers known; return a line on each whose tools are not.

        A server is started for it when it was never listed before, as it is set up now.
        """
        tasks = self._first_listings()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=wait_s)
        missing = []
        for name, upstream in self._upstreams.items():
            if upstream.problem:
                missing.append(f"{name}: {plain_text(upstream.problem)}")
            elif not tasks[name].done():
                missing.append(f"{name} is still starting: look again in a moment")
        for name, count in self._left_out.items():
            if count:
                missing.append(f"{name} lists {count:,} tools more than are taken in")
        return missing

    def _first_listings(self) -> dict[str, asyncio.Task[None]]:
        """Return what learns the tools of each server, by its name; begun the first time, and again where it failed."""
        for name, entry in self._entries.items():
            task = self._first.get(name)
            failed = task is not None and task.done() and self._upstreams[name].problem
            if task is None or (failed and not self.catalog.tools_of(name)):
                self._first[name] = asyncio.get_running_loop().create_task(self._list_first(entry))
        return self._first

    async def _list_first(self, entry: ServerEntry) -> None:
        upstream = self._upstreams[entry.name]
        try:
            stored = self._layer.fact(_LISTING + entry.origin)
            if stored is not None and entry.kind == "mcp":
                with contextlib.suppress(TypeError, KeyError):  # one of another version
                    await self._mount(entry, ToolList.of(stored))
                    return
            async with self._at_once:
                await upstream.ready()
        except MetatreeError as exc:
            upstream.problem = upstream.problem or str(exc)
            await self.catalog.mount_nothing(entry, upstream.problem)
        except Exception as exc:  # whatever is wrong with one server, the others are there
            _log.warning("the server %r cannot be listed: %s", entry.name, exc, exc_info=True)
            upstream.problem = f"{type(exc).__name__}: {exc}"
            await self.catalog.mount_nothing(entry, upstream.problem)

    async def _known_for(self, tool_id: str) -> None:
        """Have the tools known that an id may mean: those of its server, so that no other one is waited for."""
        tasks = self._first_listings()
        own = tasks.get(tool_id.strip().partition("/")[0])
        if own is None:
            await self.known()
            return
        await asyncio.wait([own])
        upstream = self._upstreams[tool_id.strip().partition("/")[0]]
        if upstream.problem and not self.catalog.tools_of(upstream.entry.name):
            raise UserError(f"{tool_id!r} is not known: {upstream.problem}")

    async def _listed(self, entry: ServerEntry, listing: ToolList) -> None:
        """Take in what a server lists now."""
        listing = without_secrets_of(listing, self._hidden)
        record = asdict(listing)
        key = _LISTING + entry.origin
        if self._layer.fact(key) != record:
            with self.memory.memory.transaction():
                self._layer.set_fact(key, record)
        await self._mount(entry, listing)

    async def _mount(self, entry: ServerEntry, listing: ToolList) -> None:
        self._left_out[entry.name] = listing.left_out
        await self.catalog.mount(entry, as_said(listing, entry))

    def overview(self) -> list[dict[str, Any]]:
        """Return the servers with what is known of their tools, as JSON."""
        permissions = Permissions(self.memory.memory)
        return [
            {
                "name": entry.name,
                "place": entry.place,
                "tools": [
                    {
                        "id": each.id,
                        "description": plain_text(each.definition.description),
                        "read_only": each.definition.read_only,
                        "permitted": permissions.allows(each.tool),
                    }
                    for each in self.catalog.tools_of(entry.name)
                ],
            }
            for entry in self._entries.values()
        ]

    # the three calls

    async def find(self, request: str, k: int = 5) -> str:
        """Return the tools that a request needs, with their arguments, as text.

        Raises:
            UserError: there is no request, or k is out of range.
        """
        if not request.strip():
            raise UserError("say in `request` what the tool is to do, one step a line")
        if not 1 <= k <= _MOST_FOUND:
            raise UserError(f"k={k}: from 1 to {_MOST_FOUND}")
        missing = await self.known()
        found = await self.catalog.find(request[:4_000], k)
        parts: list[str] = []
        left = self._chars
        for mounted in found:
            text = shown(mounted)
            if parts and len(text) > left:
                parts.append(
                    f"{len(found) - len(parts)} more fit: ask with a smaller k, or for one step alone"
                )
                break
            left -= len(text)
            parts.append(text)
        if not found and missing and not len(self.catalog):
            parts.append("No tool is known yet:")
        elif not found:
            parts.append("No tool fits: use other words, or browse_tools()")
        return "\n".join([*parts, *(f"({line})" for line in missing)])

    async def browse(self, node: str = "", offset: int = 0) -> str:
        """Return what is at a node, from an offset on: the servers, the tools of one, a tool, a long result.

        Raises:
            UserError: there is no such node.
        """
        node = node.strip()
        if node.startswith("result/"):
            return await in_thread(partial(self._results.page, node, offset))
        missing = await self.known()
        tree = self.catalog.tree
        with contextlib.suppress(UserError):
            return paged(shown(self.catalog.get(node), whole=True), offset, self._chars, node)
        at = node or "."
        if at not in tree:
            raise UserError(f"there is no node {node!r}: browse_tools() lists the servers")
        lines = []
        for child in tree.child_page(at, start=offset, count=_PAGE):
            count = tree.child_count(child.id)
            upstream = self._upstreams.get(child.id)
            state = ", running" if upstream is not None and upstream.running else ""
            about = f" ({count} below{state})" if count or state else ""
            lines.append(f"{child.id}{about}: {' '.join(child.description.split())[:160]}")
        total = tree.child_count(at)
        end = offset + len(lines)
        if end < total:
            lines.append(f"… to {end} of {total}: offset={end} shows more")
        if not node:
            lines += [f"({line})" for line in missing]
        return "\n".join(lines) or "Nothing is here."

    async def call(
        self,
        tool_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        fresh: bool = False,
        caller: GatewayClient | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return its result in the form of the protocol, or an error in that form.

        Args:
            tool_id: as `find` gives it.
            arguments: for the tool.
            key: tells intents apart: a tool that changes something is called once for a key and its arguments.
            fresh: call it although an answer is remembered that may be used again.
            caller: who calls.
        """
        caller = caller or GatewayClient()
        started, item = time.monotonic(), secrets.token_hex(8)
        record = {"tool": tool_id, "arguments": dict(arguments or {}), "key": key, "status": "started"}
        self._write(item, caller, self._public(record))
        try:
            result, more = await self._called(tool_id, arguments or {}, key, fresh, caller)
        except (MetatreeError, InDoubt) as exc:
            result, more = _error(without_texts(_words(exc), self._hidden)), {}
        except BaseException:
            with contextlib.suppress(Exception):
                self._write(item, caller, {"status": "cancelled"})
            raise
        texts = [part["text"] for part in result["content"] if part.get("type") == "text"]
        outcome = {
            "status": "failed" if result.get("isError") else "done",
            "result": self._public("\n".join(texts)[: 2 * _MOST_ON_BOARD])[:_MOST_ON_BOARD],
            "seconds": round(time.monotonic() - started, 3),
            **more,
        }
        self._write(item, caller, outcome)
        return result

    async def _called(
        self, tool_id: str, arguments: Mapping[str, Any], key: str, fresh: bool, caller: GatewayClient
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        await self._known_for(tool_id)
        for _ in range(_MOST_TRIES):
            mounted = self.catalog.get(tool_id)
            given = mounted.tool.validated(arguments)
            upstream, entry = self._upstreams[mounted.server], self._entries[mounted.server]
            if key and mounted.tool.changes and not self.gate.forbids(mounted):
                before = self._call(entry, mounted, given, key)
                made = self._log.known(before)
                if made is not None:  # nothing is called, so nobody is asked
                    return _reused(made, mounted), {"tool": mounted.id, "reused": True}
                self._log.check(before, tool=mounted.tool)
            asked = partial(self._asked, caller.ask or _nobody)
            allowed, said = await self.gate.passes(mounted, given, asked, who=caller.name)
            if not self._is_current(mounted):
                continue  # it changed while the person was asked
            if not allowed:
                raise UserError(f"not called: {said}")
            more = {"tool": mounted.id, "permission": said}
            intent = key or secrets.token_hex(16)
            call = self._call(entry, mounted, given, intent)
            if fresh and not mounted.tool.changes:
                self._log.forget(call)
            effect = secrets.token_hex(16)
            made = await self._log.claim(call, key=effect, run_id=caller.session, tool=mounted.tool)
            if made is not None:
                return _reused(made, mounted), {**more, "reused": True}
            try:
                await upstream.ready()
            except BaseException:
                self._log.drop(call, key=effect)
                raise
            if not self._is_current(mounted):
                self._log.drop(call, key=effect)  # it is listed otherwise since its server runs again
                continue
            try:
                made = await self._log.make(
                    call, partial(self._made, upstream, mounted, given), key=effect, tool=mounted.tool
                )
            except _Refused as exc:
                return exc.result, more
            finally:
                if mounted.tool.changes:
                    self._note_change(entry)
            return made.result, more
        raise ToolFailed(f"{tool_id!r} keeps changing what it says of itself: nothing was called")

    async def _asked(self, ask: Ask, question: PermissionQuestion) -> Answer | None:
        """Ask a person, whose host may keep what it shows."""
        return await ask(replace(question, text=without_texts(question.text, self._hidden)))

    async def _made(self, upstream: Upstream, mounted: Mounted, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool at its server; raises as `CallLog.make` takes it."""
        if mounted.tool.changes:
            self._note_change(self._entries[mounted.server])
        for attempt in range(2):
            again = attempt == 0 and mounted.tool.is_repeatable
            try:
                result = await upstream.call(mounted.definition.name, arguments)
                break
            except NotMade as exc:
                if attempt:
                    raise ToolFailed(str(exc)) from exc
            except Answered as exc:
                return _error(f"{exc}; it was called, do not call it again for this") | {"isError": False}
            except Unanswered as exc:
                if again and not upstream.running:
                    continue
                if mounted.tool.is_repeatable:
                    raise ToolFailed(str(exc)) from exc
                raise InDoubt(str(exc)) from exc
        result = without_texts(result, self._hidden)
        bounded = await self._bounded(result, mounted.id)
        if bounded.get("isError") and not mounted.tool.changes:
            raise _Refused(bounded)
        return bounded

    async def _bounded(self, result: dict[str, Any], tool_id: str) -> dict[str, Any]:
        """Bound a result; what is long is kept, which takes its time, in a thread."""
        texts = [part.get("text") or part for part in result.get("content") or ()]
        if sum(len(str(each)) for each in (*texts, result.get("structuredContent") or "")) <= _SHORT:
            return self._results.bounded(result, tool_id)
        return await in_thread(partial(self._results.bounded, result, tool_id))

    def _is_current(self, mounted: Mounted) -> bool:
        """Whether a tool still is what it was when it was looked up."""
        now = {each.id: each for each in self.catalog.tools_of(mounted.server)}.get(mounted.id)
        return now is not None and now.definition == mounted.definition and now.twice == mounted.twice

    def _call(self, entry: ServerEntry, mounted: Mounted, arguments: dict[str, Any], intent: str) -> Call:
        """Return what tells a call from others: the server with its account, what was changed there since, arguments.

        Secrets in the arguments are not in it, and tell it apart all the same.
        """
        changed = "" if mounted.tool.changes else self._layer.fact(_CHANGED + entry.origin) or ""
        scope = f"gateway\0{entry.identity}\0{changed}"
        shown_arguments = without_texts(arguments, self._hidden)
        if shown_arguments != arguments:
            scope += f"\0{keyed_hash(arguments)}"
        return call_of(mounted.tool, shown_arguments, _NOWHERE, scope=scope, within=intent)

    def _note_change(self, entry: ServerEntry) -> None:
        """Have no answer used again that a server gave before now."""
        with self.memory.memory.transaction():
            self._layer.set_fact(_CHANGED + entry.origin, secrets.token_hex(8))

    def _public(self, value: Any) -> Any:
        return without_secrets(without_texts(value, self._hidden))[0]

    def _write(self, item: str, caller: GatewayClient, data: Mapping[str, Any]) -> None:
        """Put a call, or what became of it, on the board; a board that cannot be written stops no call."""
        try:  # less than a millisecond, as the log of calls: a thread for it takes more
            if data.get("status") == "started":
                self._board.add(SECTION, dict(data), id=item, agent=caller.name, run=caller.session)
            else:
                self._board.update(item, dict(data))
        except MetatreeError as exc:
            _log.warning("the call is not on the board: %s", exc)


def _error(text: str) -> dict[str, Any]:
    shown = plain_text(text[:_MOST_ERROR]) + ("…" if len(text) > _MOST_ERROR else "")
    return {"content": [{"type": "text", "text": shown}], "isError": True}


def _words(exc: Exception) -> str:
    if isinstance(exc, InDoubt):
        return (
            f"{exc}. It may have been done: look whether it was, with a tool that changes nothing, before you call it"
            " again with another key"
        )
    if isinstance(exc, BadModelAnswer):
        return f"not called, the arguments do not fit: {exc}"
    return str(exc)


def _reused(made: CallResult, mounted: Mounted) -> dict[str, Any]:
    """Return a result that was remembered, with a note that says so."""
    age = max(0.0, time.time() - (made.at or time.time()))
    ago = (
        f"{age:.0f} s ago"
        if age < 120
        else f"{age / 60:.0f} minutes ago"
        if age < 7_200
        else f"{age / 3600:.0f} h ago"
    )
    note = (
        f"(done {ago} under this key, and not again; this is what it gave)"
        if mounted.tool.changes
        else f"(asked {ago}, and not again; fresh=true asks again)"
    )
    result: dict[str, Any] = dict(made.result)
    result["content"] = [*result["content"], {"type": "text", "text": note}]
    result["_meta"] = {"metatree/reused": {**made.origin(), "age_seconds": round(age, 1)}}
    return result
