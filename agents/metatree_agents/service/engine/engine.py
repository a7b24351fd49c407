"""An engine: claims topics of a query service, answers them by searches of a tree, hands back what it must leave."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, TypeVar

from metatree import Limits, Tree
from metatree._util.secret_text import shapes_masked
from metatree._util.threads import run_beside
from metatree.durable.renewal import SHARE, Renewal
from metatree.errors import LeaseLost, MetatreeError, TransientError, UserError
from metatree_agents.service.engine._follow_up import kept_tree, with_kept
from metatree_agents.service.engine._memories import Memory, OwnTree
from metatree_agents.service.engine._several import found_in, joined
from metatree_agents.service.engine.answering import CUT_OFF, answer_query, found_so_far
from metatree_agents.service.engine.client import (
    ServiceAway,
    ServiceClient,
    ServiceRefused,
    WrongCredentials,
    patiently,
)
from metatree_agents.service.engine.nearest import matches_of
from metatree_agents.service.engine.router_state import RouterState, RouterUse
from metatree_agents.service.http.bodies import MOST_ERROR
from metatree_agents.service.queue.models import Ending, EngineAnswer, EngineQuery
from metatree_agents.service.queue.queue import LEASE_S
from metatree_agents.service.queue.thanks import NOT_SEARCHED, WELCOME, is_thanks

RENEW_MOST_S: Final = 10.0
"""How long one renewal of a lease may take; a third of the lease where that is less."""
LEAVE_S: Final = 2.0
"""How long an engine that stops waits for the service to take its leave."""
STEPS_S: Final = 0.25
IDLE_S: Final = 1.0
IDLE_MOST_S: Final = 10.0
"""How often lookups are asked for while none is wanted: each call is a nonce that the service keeps for ever."""
LEARN_S: Final = 30.0
PAUSE_S: Final = 5.0
"""How long a topic is kept back after its search failed for now; doubled each time."""
TRIES: Final = 5
"""How often an engine searches for an answer when it fails for now."""
SKIPPED: Final = "stopped before its search began"
_MOST_FAILING: Final = 1_000
_log = logging.getLogger("metatree.engine")
T = TypeVar("T")


class Engine:
    """Answers queries of one service from one memory.

    Args:
        client: the service, as a user with the role of an engine; entered by the caller.
        tree: the memory; shared by all searches of this engine. A tree of its own, or one that a service shares; or
            trees of its own by the names that the service has for them.
        parts: router and reader and so on, as for `search`, or what gives them for a tree; none for the embedded ones.
        concurrency: how many topics are answered at the same time.
        limits: bounds of each search.
    """

    def __init__(
        self,
        client: ServiceClient,
        tree: Tree | Memory | Mapping[str, Tree],
        *,
        parts: Mapping[str, Any] | Callable[[Tree], Mapping[str, Any]] | None = None,
        concurrency: int = 1,
        limits: Limits | None = None,
        on_answer: Callable[[EngineQuery, EngineAnswer], None] | None = None,
    ) -> None:
        self._client = client
        if isinstance(tree, Mapping):
            self._memories: dict[str, Memory] = {
                name: OwnTree(client, its, name) for name, its in tree.items()
            }
        else:
            self._memories = {"": OwnTree(client, tree) if isinstance(tree, Tree) else tree}
        self._titles: dict[str, str] = {}
        """Of trees that have names, as the service says."""
        names = ",".join(name for name in self._memories if name)
        self._served = {"Trees": names} if names else {}
        self._parts = parts if callable(parts) else lambda _: parts or {}
        self._concurrency = max(1, concurrency)
        self._limits = limits
        self._on_answer = on_answer
        self._stopping = asyncio.Event()
        self._failing: dict[tuple[str, int], int] = {}
        """How often the search for a query has failed for now."""
        self._router = RouterState()
        self._router_told: bool | None = False
        """Whether the service was told that the router fails; None where that is not known."""

    def stop(self) -> None:
        """Claim nothing more, stop searches, and hand their topics back; `run` then returns."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`.

        Raises:
            UserError: the service does not accept the credentials, or their role.
        """
        loops = [self._answer_topics() for _ in range(self._concurrency)] + [self._look_up(), self._learn()]
        tasks: list[asyncio.Future[None]] = [asyncio.ensure_future(loop) for loop in loops]
        stopped: asyncio.Future[Any] = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({*tasks, stopped}, return_when=asyncio.FIRST_COMPLETED)
            try:
                for task in tasks:
                    if task.done():
                        task.result()
            except ServiceRefused as exc:
                raise UserError(str(exc)) from exc
            # A claim in progress is let go of by the server when its connection closes; answers are finished.
            await asyncio.wait(tasks, timeout=30)
        finally:
            for task in (*tasks, stopped):
                task.cancel()
            await asyncio.gather(*tasks, stopped, return_exceptions=True)
            await self._leave()

    async def _leave(self) -> None:
        """Say that this engine goes, so that nobody waits for it; a service that cannot take it finds out in time."""
        with suppress(MetatreeError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._client.call("POST", "leave", body={})

    async def _until_stopped(self, what: Coroutine[Any, Any, T], *ends: asyncio.Event) -> T | None:
        """Await something, or give it up when the engine stops, or at another event; return None then."""
        task = asyncio.ensure_future(what)
        ended = [asyncio.ensure_future(event.wait()) for event in (self._stopping, *ends)]
        try:
            await asyncio.wait({task, *ended}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for waiting in ended:
                waiting.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        await self._until_stopped(asyncio.sleep(seconds))

    async def _answer_topics(self) -> None:
        while not self._stopping.is_set():
            try:
                batch = await self._until_stopped(self._client.call("GET", "get-new-queries", **self._served))
            except ServiceAway:
                await self._pause(IDLE_S)
                continue
            if batch and batch["Topic"] is not None:
                await self._answer_topic(batch)

    async def _answer_topic(self, batch: dict[str, Any]) -> None:
        """Answer what a topic was claimed with; give it up as soon as another engine may have it."""
        loop, lost = asyncio.get_running_loop(), asyncio.Event()
        with self._renewal(batch, lost=lambda: loop.call_soon_threadsafe(lost.set)):
            await self._answer_queries(batch, lost)

    def _renewal(
        self, batch: Mapping[str, Any], *, lost: Callable[[], object]
    ) -> AbstractContextManager[object]:
        """Renew the lease of a topic, whatever the loop does; a service that gives none has none renewed."""
        if not (lease := batch.get("Lease")):
            return nullcontext()
        lease_body = {"Topic": batch["Topic"], "Lease": lease}
        every_s = float(batch.get("LeaseSeconds") or LEASE_S) / SHARE

        def renew() -> None:
            most_s = min(every_s, RENEW_MOST_S)
            try:
                self._client.call_from_thread("POST", "renew-lease", body=lease_body, timeout_s=most_s)
            except ServiceRefused as exc:
                if exc.status == 409:
                    raise LeaseLost(lease_body["Topic"]) from exc
                raise

        return Renewal(renew, every_s=every_s, lost=lost)

    async def _answer_queries(self, batch: Mapping[str, Any], lost: asyncio.Event) -> None:
        topic, lease = batch["Topic"], batch.get("Lease")
        try:
            for item in batch["Queries"]:
                ((seq, text),) = item.items()
                modifiers = (batch.get("Modifiers") or {}).get(seq) or {}
                replies = (batch.get("Asked") or {}).get(seq) or []
                run = (batch.get("Runs") or {}).get(seq)
                trees = tuple(batch.get("Trees") or ())
                query = EngineQuery(topic, int(seq), text, modifiers, told=replies, run=run, trees=trees)
                if lost.is_set():
                    return
                if self._stopping.is_set() or not (reply := await self._answer(query, lost, lease)):
                    await self._hand_back(topic, lease)
                    return
                if reply.ended == "cancelled":
                    if reply.detail == SKIPPED:
                        continue
                    return  # the lease has ended with the search
                if reply.asks:
                    await self._park(query, reply, lease)
                    return
        except MetatreeError:
            await self._hand_back(topic, lease)
            raise

    async def _hand_back(self, topic: str, lease: str | None) -> None:
        with suppress(MetatreeError):
            await self._client.call("POST", "hand-back", body={"Topic": topic, "Lease": lease})

    async def _answer(
        self, query: EngineQuery, lost: asyncio.Event, lease: str | None
    ) -> EngineAnswer | None:
        """Answer one query, or come to where its run asks a person; None when the topic goes back, or is lost.

        One whose search is stopped is `cancelled`.
        """
        topic, seq = query.topic, query.seq
        try:
            thread = await patiently(self._client, "GET", "get-topic-thread", Topic=topic)
        except ServiceRefused:
            thread = []  # a service that shows engines no threads: the query stands alone
        asked = [one for one in thread if not is_thanks(str(one.get("Query") or ""))]
        query = replace(query, earlier=asked)
        if any(one.get("Seq") == seq and one.get("Status") == "Stopped" for one in thread):
            return EngineAnswer([], [], [], "cancelled", SKIPPED)
        steps: list[dict[str, Any]] = []
        if self._router.error:  # a server that was started again does not know it
            self._router_told = None
        telling, stopped = asyncio.ensure_future(self._tell(topic, seq, steps)), asyncio.Event()
        watching = asyncio.ensure_future(self._watch(query, lease, stopped, lost))
        try:
            reply = await self._until_stopped(self._search(query, steps), lost, stopped)
        except WrongCredentials:
            raise
        except (MetatreeError, OSError) as exc:
            reply = await self._failed(query, exc)
        finally:
            telling.cancel()
            watching.cancel()
        if reply is None:
            if stopped.is_set():
                await self._send(topic, seq, steps)
                return await self._give_found(query)
            if lost.is_set():
                _log.warning("the lease of %s has ended: its search is given up, for another engine", topic)
            return None
        self._failing.pop((topic, seq), None)
        await self._send(topic, seq, steps)
        await self._tell_router()
        if not reply.asks:
            await self._give(query, reply)
        if self._on_answer is not None:
            self._on_answer(query, reply)
        return reply

    async def _watch(
        self, query: EngineQuery, lease: str | None, stopped: asyncio.Event, lost: asyncio.Event
    ) -> None:
        """Hear of it when somebody stops the search for a query; a service that cannot say so is not asked again."""
        while lease:
            try:
                body = {"Topic": query.topic, "Seq": query.seq, "Lease": lease}
                ended = (await self._client.call("POST", "wait-for-stop", body=body)).get("Ended")
            except ServiceAway:
                await asyncio.sleep(IDLE_S)
                continue
            except MetatreeError:
                return
            if ended:
                (stopped if ended == "stopped" else lost).set()
                return
            await asyncio.sleep(STEPS_S)

    async def _give_found(self, query: EngineQuery) -> EngineAnswer:
        """Give what a search had found that was stopped; its run is in the journal, so it may go on later."""
        found = EngineAnswer([], [], [], "cancelled", ending=Ending("stopped"))
        try:
            replies = []
            for name in query.trees or ("",):
                async with self._memory(name).using() as tree:
                    replies.append((name, name, await asyncio.to_thread(found_so_far, tree, query)))
            found = found_in(replies) if query.trees else replies[0][2]
        except (MetatreeError, OSError) as exc:
            _log.warning("what %s %d had found is not known: %s", query.topic, query.seq, exc)
        await self._give(query, found)
        return replace(found, ended="cancelled", detail="")

    async def _failed(self, query: EngineQuery, exc: MetatreeError | OSError) -> EngineAnswer | None:
        """Keep a query whose search fails for now back for a while; None to hand it back, others may have its memory.

        A topic that is handed back has the attempt taken off, so tries are counted here: the last one is its answer.
        """
        key = query.topic, query.seq
        tries = self._failing.pop(key, 0) + 1
        _log.warning("the search for %s %d failed, try %d of %d: %s", *key, tries, TRIES, exc)
        if tries >= TRIES:
            return _failure(exc)
        if len(self._failing) >= _MOST_FAILING:  # others have answered most of them
            self._failing.clear()
        self._failing[key] = tries
        await self._pause(PAUSE_S * 2 ** (tries - 1))
        return None

    async def _give(self, query: EngineQuery, reply: EngineAnswer) -> None:
        body = {
            "Topic": query.topic,
            "Seq": query.seq,
            "Query": query.text,
            "Answer": reply.answer,
            "Think": reply.think,
            "Sources": reply.sources,
            "End": reply.ending.end,
            "Open": reply.ending.open,
            "Closest": reply.ending.closest,
            "Notes": reply.ending.notes,
        }
        try:
            await patiently(self._client, "POST", "give-new-answer", body=body)
        except ServiceRefused as exc:
            _log.warning("the answer to %s %d was not taken: %s", query.topic, query.seq, exc)

    async def _park(self, query: EngineQuery, reply: EngineAnswer, lease: str | None) -> None:
        """Let a topic wait for a person; its run is in the journal, so this engine or another goes on with it."""
        body = {"Topic": query.topic, "Seq": query.seq, "Lease": lease, "Questions": reply.asks}
        try:
            await patiently(self._client, "POST", "ask-person", body=body)
        except ServiceRefused as exc:  # the lease has ended: whoever has it now comes to the same question
            _log.warning("what %s %d asks was not taken: %s", query.topic, query.seq, exc)

    async def _search(self, query: EngineQuery, steps: list[dict[str, Any]]) -> EngineAnswer:
        """Search the memory as it is now; who thanks for an answer is answered without.

        Raises:
            MetatreeError, OSError: the memory is not there for now.
            TransientError: a part of the search is away or busy.
        """
        if is_thanks(query.text) and any(one.get("Seq", 0) < query.seq for one in query.earlier):
            return EngineAnswer([WELCOME], [NOT_SEARCHED], [], "answered", ending=Ending("answered"))
        if not query.trees:
            return await self._search_one("", query, steps.append)
        if not self._titles.keys() >= {*query.trees}:
            known = await patiently(self._client, "GET", "trees")
            self._titles = {each["Name"]: each["Title"] for each in known}
        # One after another: each takes a whole core, and the first may take what there is of a limit.
        replies = []
        kept = kept_tree(query, self._titles)
        for name in query.trees if kept is None else [kept]:
            reply = await self._search_one(name, query, _telling(steps, name))
            replies.append((name, self._titles.get(name, name), reply))
        return joined(replies) if kept is None else with_kept(joined(replies), self._titles.get(kept, kept))

    async def _search_one(
        self, name: str, query: EngineQuery, tell: Callable[[dict[str, Any]], None]
    ) -> EngineAnswer:
        memory = self._memory(name)
        async with memory.using() as tree:
            version, use = memory.version, RouterUse(self._router)
            try:
                reply = await run_beside(
                    lambda: answer_query(
                        tree,
                        query,
                        parts=self._parts(tree),
                        limits=self._limits,
                        on_step=tell,
                        on_event=use.see,
                    )
                )
                use.ended()
            except (TransientError, WrongCredentials):
                raise
            except MetatreeError as exc:
                _log.warning("the search for %s %d failed: %s", query.topic, query.seq, exc)
                return _failure(exc)
        if version:
            reply = replace(reply, think=[f"searched version {version} of the memory", *reply.think])
        return reply

    def _memory(self, name: str) -> Memory:
        try:
            return self._memories[name]
        except KeyError:
            what = f"{self._client.url} wants a search of {name!r}, a tree that this engine did not offer"
            raise ServiceRefused(what, status=200) from None

    async def _tell(self, topic: str, seq: int, steps: list[dict[str, Any]]) -> None:
        while True:
            await asyncio.sleep(STEPS_S)
            await self._send(topic, seq, steps)
            await self._tell_router()

    async def _send(self, topic: str, seq: int, steps: list[dict[str, Any]]) -> None:
        """Send the steps that have come; those that cannot be sent are left out, since an answer matters more."""
        now, steps[:] = steps[:100], steps[100:]
        if now:
            with suppress(MetatreeError):
                await self._client.call(
                    "POST", "give-progress", body={"Topic": topic, "Seq": seq, "Steps": now}
                )

    async def _tell_router(self) -> None:
        """Tell the service that the router fails, or works again; one that takes no such thing is left alone."""
        error = self._router.error
        if bool(error) is self._router_told:
            return
        self._router_told = bool(error)
        with suppress(MetatreeError):
            await self._client.call("POST", "give-router-state", body={"Error": error[:MOST_ERROR]})

    # Wrong credentials end the loops that answer topics, and so this engine; these two go on whatever happens.

    async def _look_up(self) -> None:
        idle_s = IDLE_S
        while not self._stopping.is_set():
            try:
                await self._look_up_next()
                idle_s = IDLE_S
            except WrongCredentials:
                await self._pause(IDLE_MOST_S)
            except (MetatreeError, OSError) as exc:
                # 404: none is wanted; 403: not the role of an engine, as the loops that answer topics say
                known = isinstance(exc, ServiceRefused) and exc.status in (403, 404)
                if not known and not isinstance(exc, ServiceAway):
                    _log.warning("the lookup failed: %s; trying again", exc)
                await self._pause(idle_s)
                idle_s = min(idle_s * 2, IDLE_MOST_S)

    async def _look_up_next(self) -> None:
        indexes = [memory.index for memory in self._memories.values()]
        state = {} if None in indexes else {"Index": _state_of([each or "" for each in indexes])}
        lookup = await self._client.call("GET", "get-new-lookup", **state, **self._served)
        found: list[tuple[float, str]] = []
        for name in lookup.get("Trees") or ("",):
            async with self._memory(name).using() as tree:
                found += await asyncio.to_thread(
                    matches_of, tree, lookup["Fragment"], lookup["Count"], lookup["Threshold"]
                )
        found.sort(key=lambda each: each[0])
        matches = [match for _, match in found[: lookup["Count"]]]
        with suppress(ServiceRefused):
            await patiently(
                self._client,
                "POST",
                "give-new-matches",
                body={"Fingerprint": lookup["Fingerprint"], "Matches": matches},
            )

    async def _learn(self) -> None:
        while not self._stopping.is_set():
            try:
                for memory in self._memories.values():
                    await memory.follow()
            except WrongCredentials:
                pass
            except ServiceRefused:
                pass  # a service that has the documented routes alone tells engines no recommendations
            except (MetatreeError, OSError) as exc:
                _log.warning("what people recommend was not remembered: %s; trying again", exc)
            await self._pause(LEARN_S)


def _state_of(indexes: Sequence[str]) -> str:
    """Return what differs whenever a lookup in any of the trees may find something else."""
    return indexes[0] if len(indexes) == 1 else sha256("\0".join(indexes).encode()).hexdigest()


def _telling(steps: list[dict[str, Any]], tree: str) -> Callable[[dict[str, Any]], None]:
    """Return what takes the steps of a search in a tree that has a name."""
    return lambda step: steps.append({**step, "Tree": tree})


def _failure(exc: Exception) -> EngineAnswer:
    """Return the message for an asker: the error may name servers and files that are not theirs to know."""
    return EngineAnswer(
        [CUT_OFF["failed"]], [], [], "failed", shapes_masked(str(exc)), ending=Ending("nothing")
    )
