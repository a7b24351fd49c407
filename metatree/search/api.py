"""`search` and its relatives: start a run, take one up again, watch one, look at those that were."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

from metatree.errors import LeaseLost, UserError
from metatree.fallback import Fallback, _AskPerson, ask_person
from metatree.kernel import Folded, Journal, MemoryJournal, Record, RunInfo, Runner, fold
from metatree.kernel.sqlite_journal import SqliteJournal
from metatree.node import Node
from metatree.protocols import Composer, Describer, Evidence, Reader, Router, ToolCaller
from metatree.result import Limits, SearchResult, TraceEntry
from metatree.search.machine import SearchMachine, fold_question
from metatree.search.menu import MenuMaker
from metatree.search.outcome import result_of, trace_of
from metatree.search.parts import find_evidence, whole_suite
from metatree.search.state import SearchState
from metatree.search.toolbox import Permit, Toolbox
from metatree.search.world import World
from metatree.store import Store
from metatree.tool import Tool, ToolGroup, ToolTree
from metatree.tree import Tree

T = TypeVar("T")

Accept = Collection[str] | Callable[[Node], bool]
OnEvent = Callable[[TraceEntry], object]
_MACHINE_LIMITS = ("questions", "depth", "nodes_created", "restarts")
_log = logging.getLogger("metatree")


def accepts_by_default(node: Node) -> bool:
    """Say whether `returns="nodes"` collects a node when nothing else is asked: a file, a definition, an action, or
    any other node with content."""
    return node.has_content or node.kind in ("file", "definition", "action")


class Search:
    """One run: its tree, its parts and its journal, ready to be driven.

    `search`, `asearch`, `astream` and `resume` are thin drivers around it.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        returns: str,
        accept: Accept | None,
        router: Router | None,
        reader: Reader | None,
        tool_caller: ToolCaller | None,
        composer: Composer | None,
        describer: Describer | None,
        evidence: Evidence | Literal[False] | None,
        tools: Sequence[Tool | ToolGroup],
        permit: Permit | None,
        fallbacks: Sequence[Fallback | _AskPerson],
        concurrency: int,
        limits: Limits,
        on_event: OnEvent | None,
        run_id: str,
    ) -> None:
        suite = whole_suite(router, reader, tool_caller, composer, describer)
        self.tree = tree
        self.limits = limits
        self.concurrency = concurrency
        self.on_event = on_event
        self.machine = SearchMachine()
        found = find_evidence(tree, required=router is None) if evidence is None else evidence or None
        accepts = _accept_function(accept) if returns == "nodes" else None
        kinds = accept if accept is not None and not callable(accept) else None
        menus = MenuMaker(
            tree, found, accepts=accepts, among=tree.ids(kinds) if kinds and accepts and found else None
        )
        toolbox = Toolbox(
            tree,
            ToolTree(tools),
            run_id=run_id,
            tool_caller=suite.tool_caller,
            describer=suite.describer,
            permit=permit,
            fallbacks=fallbacks,
            accepts=accepts,
            timeout_s=limits.effect_seconds,
        )
        world = World(
            tree,
            router=suite.router,
            reader=suite.reader,
            composer=suite.composer,
            menus=menus,
            accepts=accepts,
            has_tools=toolbox.has_tools,
            timeout_s=limits.effect_seconds,
        )
        self.handlers = world.handlers() | toolbox.handlers()
        self.policies = world.policies() | toolbox.policies()
        self._emitted = 0

    async def drive(
        self,
        journal: Journal,
        run_id: str,
        token: int,
        folded: Folded[SearchState],
        answers: Mapping[int, Any],
    ) -> SearchResult:
        """Carry the run on and return what it found; an error of the journal or the machine ends it as `failed`."""
        self._emitted = 0 if folded.seq == 1 else len(folded.state.trace)
        self._emit(folded.state)
        runner = Runner(
            self.machine,
            journal,
            run_id,
            token,
            handlers=self.handlers,
            policies=self.policies,
            limits=_bounds(self.limits),
            concurrency=self.concurrency,
            on_step=self._emit if self.on_event else None,
        )
        try:
            finish = await runner.drive(folded, answers=answers)
        except LeaseLost:
            raise
        except Exception as exc:
            _log.warning("run %s failed", run_id, exc_info=True)
            detail = f"{type(exc).__name__}: {exc}"
            return result_of(folded.state, folded.used, ended="failed", detail=detail, run_id=run_id)
        detail = finish.detail
        if finish.ended == "waiting":
            detail = "; ".join(str(effect.payload["question"]) for effect in finish.waiting)
        return result_of(finish.state, finish.used, ended=finish.ended, detail=detail, run_id=run_id)

    def _emit(self, state: SearchState) -> None:
        if self.on_event is None:
            return
        for entry in trace_of(state.trace[self._emitted :]):
            self._emitted += 1
            try:
                self.on_event(entry)
            except Exception:
                _log.warning("on_event raised; the search goes on", exc_info=True)


async def asearch(
    questions: str | Sequence[str],
    start_node: str | Node | None = None,
    *,
    tree: Tree,
    returns: Literal["answer", "nodes"] = "answer",
    k: int = 5,
    accept: Accept | None = None,
    context: str = "",
    router: Router | None = None,
    reader: Reader | None = None,
    tool_caller: ToolCaller | None = None,
    composer: Composer | None = None,
    describer: Describer | None = None,
    evidence: Evidence | Literal[False] | None = None,
    tools: Sequence[Tool | ToolGroup] = (),
    permit: Permit | None = None,
    fallbacks: Sequence[Fallback | _AskPerson] = (),
    concurrency: int = 1,
    second_look: bool = True,
    on_event: OnEvent | None = None,
    run_id: str | None = None,
    journal: str | Path | Journal | None = None,
    limits: Limits | None = None,
) -> SearchResult:
    """Search a tree for answers, or for the nodes themselves.

    Args:
        questions: one or several; a single string is a list of one.
        start_node: explored first, then its parent's other children, and so on up to the root. None is the root.
        returns: `answer`, or `nodes` to collect up to `k` nodes without reading them.
        accept: for `nodes`: kinds, or a function that says which nodes count.
        context: what the router and the reader should know besides.
        router: None for the embedded one, which needs no model.
        evidence: None for the text index; False for none at all.
        tools: tools and groups of tools, for nodes whose content and children do not answer.
        permit: decides on calls of tools that change something; without it they are refused.
        fallbacks: what to do when the tree is exhausted, in order; `ask_person` as a link puts it to a person.
        concurrency: how many effects may be in flight; above 1, each question is searched in a frame of its own.
        second_look: whether what was ruled out is offered once more before the search gives up.
        on_event: called with each trace entry as it is made.
        run_id: a name to resume by; a random one when None.
        journal: a file or a journal; None keeps the run in the tree's own memory.
        limits: see `Limits`.

    Returns:
        What was found, also when a limit was reached, a person is waited for, or something failed.

    Raises:
        UserError: there is no question, no such node, or the run exists already.

    Example:
        >>> from metatree import Node, Tree, search
        >>> from metatree_routers import ScriptedRouter
        >>> tree = Tree.create(":memory:")
        >>> _ = tree.add(Node(id="a", title="Auth", description="Login and tokens"), parent=tree.root)
        >>> _ = tree.add(Node(id="a1", title="tokens.py", content="TTL = 3600  # one hour"), parent="a")
        >>> found = search("How long do tokens live?", tree=tree, router=ScriptedRouter(["a1"]), returns="nodes", k=1)
        >>> [node.id for node in found.nodes]
        ['a1']
    """
    limits = limits or Limits()
    asked = _questions(questions)
    if returns not in ("answer", "nodes"):
        raise UserError(f"returns={returns!r}: use 'answer' or 'nodes'")
    if k < 1:
        raise UserError(f"k={k}: use 1 or more")
    start = tree.get(start_node if start_node is not None else tree.root)
    run_id = run_id or uuid.uuid4().hex[:12]
    run = Search(
        tree,
        returns=returns,
        accept=accept,
        router=router,
        reader=reader,
        tool_caller=tool_caller,
        composer=composer,
        describer=describer,
        evidence=evidence,
        tools=tools,
        permit=permit,
        fallbacks=fallbacks,
        concurrency=concurrency,
        limits=limits,
        on_event=on_event,
        run_id=run_id,
    )
    given = {
        "questions": asked,
        "context": context,
        "returns": returns,
        "k": k,
        "trail": [*tree.ancestors(start.id), start.id],
        "limits": _machine_limits(limits),
        "second_look": second_look,
        "fallbacks": ["person" if f is ask_person else "call" for f in fallbacks],
        "apart": concurrency > 1 and returns == "answer" and len(asked) > 1,
        "accept": None if accept is None else "function" if callable(accept) else sorted(accept),
        "concurrency": concurrency,
        "tree": str(tree.path) if tree.path else None,
    }
    with _Opened(journal, tree) as kept:
        first = Record("begin", _now(), body=given)
        token = kept.create(run_id, run.machine.name, first)
        return await run.drive(kept, run_id, token, fold(run.machine, [first]), {})


async def aresume(
    run_id: str,
    *,
    journal: str | Path | Journal | None = None,
    tree: Tree | None = None,
    accept: Accept | None = None,
    router: Router | None = None,
    reader: Reader | None = None,
    tool_caller: ToolCaller | None = None,
    composer: Composer | None = None,
    describer: Describer | None = None,
    evidence: Evidence | Literal[False] | None = None,
    tools: Sequence[Tool | ToolGroup] = (),
    permit: Permit | None = None,
    fallbacks: Sequence[Fallback | _AskPerson] = (),
    on_event: OnEvent | None = None,
    limits: Limits | None = None,
    answers: Mapping[str, str] | None = None,
) -> SearchResult:
    """Take a run up again after a crash, a limit, or while it waits for a person.

    What is in the journal is not done again. A run that has ended gives its result once more.

    Args:
        run_id: the run.
        journal: where it is; None looks in the tree's own memory.
        tree: None opens the tree that the run began with.
        accept, router, reader, tool_caller, composer, describer, evidence, tools, permit, fallbacks, on_event: as the
            run was begun with; parts are not kept in a journal.
        limits: replace the earlier ones; what was used so far still counts.
        answers: question -> answer, for questions that the run put to a person.

    Raises:
        UnknownRun: the journal does not know it.
        LeaseLost: another process is at work on it.
        UserError: an answer is to a question that was not asked.
    """
    if tree is None and journal is None:
        raise UserError("resume needs the tree or the journal that the run was kept in")
    with _Opened(journal, tree) as kept:
        machine = SearchMachine()
        records = kept.read(run_id)
        given = records[0].body
        if tree is None:
            if given["tree"] is None:
                raise UserError(f"run {run_id!r} searched a tree in memory: give that tree to resume")
            tree = Tree.open(given["tree"])
        if accept is None and given["accept"] == "function":
            raise UserError(f"run {run_id!r} was begun with an accept function: give it to resume again")
        run = Search(
            tree,
            returns=given["returns"],
            accept=accept if accept is not None else given["accept"],
            router=router,
            reader=reader,
            tool_caller=tool_caller,
            composer=composer,
            describer=describer,
            evidence=evidence,
            tools=tools,
            permit=permit,
            fallbacks=fallbacks,
            concurrency=given["concurrency"],
            limits=limits or Limits(),
            on_event=on_event,
            run_id=run_id,
        )
        folded = fold(machine, records)
        ended = machine.ended(folded.state)
        if ended is not None:
            return result_of(folded.state, folded.used, ended=ended, detail="", run_id=run_id)
        token = kept.acquire(run_id)
        records = kept.read(run_id)  # now that nobody else writes
        folded = fold(machine, records)
        settled = _answers_by_effect(folded, answers or {})
        extra = [Record("resume", _now())]
        if limits is not None:
            extra.append(Record("signal", _now(), body={"name": "limits", "value": _machine_limits(limits)}))
        for record in extra:
            kept.append(run_id, token, folded.seq, record)
            folded = fold(machine, [*records, record])
            records.append(record)
        return await run.drive(kept, run_id, token, folded, settled)


def search(
    questions: str | Sequence[str], start_node: str | Node | None = None, **options: Any
) -> SearchResult:
    """Do what `asearch` does, and wait for it; works inside a running event loop too.

    It runs on a loop of its own in a fresh thread, with the caller's context variables. A router whose client is
    bound to a loop needs `asearch`.
    """
    return run_apart(lambda: asearch(questions, start_node, **options))


def resume(run_id: str, **options: Any) -> SearchResult:
    """Do what `aresume` does, and wait for it."""
    return run_apart(lambda: aresume(run_id, **options))


async def astream(
    questions: str | Sequence[str], start_node: str | Node | None = None, **options: Any
) -> AsyncIterator[TraceEntry | SearchResult]:
    """Yield each trace entry as it is made, and the result at last."""
    queue: asyncio.Queue[TraceEntry | None] = asyncio.Queue()
    task = asyncio.ensure_future(asearch(questions, start_node, on_event=queue.put_nowait, **options))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (entry := await queue.get()) is not None:
            yield entry
        yield task.result()
    finally:
        task.cancel()


def runs(*, journal: str | Path | Journal | None = None, tree: Tree | None = None) -> list[RunInfo]:
    """List the runs of a journal, or of a tree's own memory, the last changed first."""
    with _Opened(journal, tree) as kept:
        return list(kept.runs())


def load_run(
    run_id: str, *, journal: str | Path | Journal | None = None, tree: Tree | None = None
) -> SearchResult:
    """Return what a run has found and done so far, from its journal alone.

    `ended` is `failed` with the detail `not finished` when its process died or is still at work.
    """
    with _Opened(journal, tree) as kept:
        records = kept.read(run_id)
        machine = SearchMachine()
        folded = fold(machine, records)
        ended = machine.ended(folded.state)
        detail = ""
        if ended is None:
            last = records[-1]
            ended, detail = "failed", "not finished: resume it"
            if last.kind == "stop":
                ended, detail = last.body["ended"], last.body["detail"]
        return result_of(folded.state, folded.used, ended=ended, detail=detail, run_id=run_id)


def cancel(run_id: str, *, journal: str | Path | Journal | None = None, tree: Tree | None = None) -> None:
    """Ask the process that works on a run to stop after the effects in flight."""
    with _Opened(journal, tree) as kept:
        kept.cancel(run_id)


def run_apart(make: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end on a loop of its own in a fresh thread, with the caller's context variables."""
    context = contextvars.copy_context()
    result: list[T] = []
    failure: list[BaseException] = []
    loop = asyncio.new_event_loop()
    # Waited for instead of the thread: `Thread.join` that Ctrl-C interrupts takes the thread for ended, so a second
    # join would not wait (Python 3.11 and 3.12, https://github.com/python/cpython/issues/90882).
    ended = threading.Event()
    task: list[asyncio.Future[T]] = []

    async def awaited() -> T:
        return await make()

    def work() -> None:
        asyncio.set_event_loop(loop)
        try:
            task.append(loop.create_task(awaited(), context=context))
            result.append(loop.run_until_complete(task[0]))
        except BaseException as exc:
            failure.append(exc)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            ended.set()

    threading.Thread(target=work, name="metatree-search", daemon=True).start()
    try:
        ended.wait()
    except BaseException:  # Ctrl-C in the caller: stop the run where it is, then go
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: task and task[0].cancel())
        ended.wait()
        raise
    if failure:
        raise failure[0]
    return result[0]


class _Opened:
    """Opens the journal that was asked for, and closes what it opened."""

    def __init__(self, journal: str | Path | Journal | None, tree: Tree | None) -> None:
        self._journal = journal
        self._tree = tree
        self._store: Store | None = None

    def __enter__(self) -> Journal:
        if isinstance(self._journal, str | Path):
            self._store = Store.open(self._journal)
            return SqliteJournal(self._store)
        if self._journal is not None:
            return self._journal
        if self._tree is None:
            raise UserError("give the journal or the tree that the run was kept in")
        if self._tree.memory.path is None:
            kept: MemoryJournal = self._tree.scratch.setdefault("journal", MemoryJournal())
            return kept
        return SqliteJournal(self._tree.memory)

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()


def _questions(questions: str | Sequence[str]) -> list[str]:
    asked = [questions] if isinstance(questions, str) else list(questions)
    if not asked or not all(isinstance(q, str) and q.strip() for q in asked):
        raise UserError("there is no question, or an empty one: give one or more questions as text")
    return list({fold_question(q): q.strip() for q in reversed(asked)}.values())[::-1]


def _accept_function(accept: Accept | None) -> Callable[[Node], bool]:
    if accept is None:
        return accepts_by_default
    if callable(accept):
        return accept
    kinds = {accept} if isinstance(accept, str) else set(accept)
    return lambda node: node.kind in kinds


def _answers_by_effect(folded: Folded[SearchState], answers: Mapping[str, str]) -> dict[int, dict[str, Any]]:
    """Match answers to the questions that the run waits with."""
    asked = {
        fold_question(effect.payload["question"]): effect.id
        for effect in folded.pending.values()
        if effect.kind == "ask"
    }
    settled: dict[int, dict[str, Any]] = {}
    for question, answer in answers.items():
        effect = asked.get(fold_question(question))
        if effect is None:
            waiting = "; ".join(asked) or "nothing"
            raise UserError(f"the run did not ask {question!r}; it waits for: {waiting}")
        settled[effect] = {"answer": answer}
    return settled


def _machine_limits(limits: Limits) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in _MACHINE_LIMITS}


def _bounds(limits: Limits) -> dict[str, float]:
    """Return the limits that the kernel keeps."""
    bounds: dict[str, float] = {}
    for field in fields(limits):
        value = getattr(limits, field.name)
        if value is not None and field.name not in (*_MACHINE_LIMITS, "effect_seconds"):
            bounds[field.name] = float(value) if isinstance(value, Decimal) else value
    return bounds


def _now() -> float:
    import time

    return time.time()
