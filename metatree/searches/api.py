"""`search` and its relatives: start a run, take one up again, watch one, look at those that were."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from metatree._util.threads import run_apart
from metatree.durable import Effect, Folded, Journal, MemoryJournal, Record, RunInfo, first_record, fold
from metatree.durable.sqlite_journal import SqliteJournal
from metatree.errors import UserError
from metatree.node import Node
from metatree.protocols import Composer, Describer, Evidence, Reader, Router, ToolCaller
from metatree.result import Limits, SearchResult, TraceEntry
from metatree.searches._context import fold_question
from metatree.searches._machine import SearchMachine
from metatree.searches._result import result_of
from metatree.searches._run import (
    Accept,
    OnEvent,
    Search,
    accepted_kinds,
    limits_json,
    limits_of,
    waited_for,
)
from metatree.searches._stagger import begin
from metatree.searches._state import SearchState
from metatree.searches._toolbox import Permit
from metatree.searches.fallback import Fallback, _AskPerson, ask_person
from metatree.searches.on_blackboard import BoardLink, complete, reopened, when_answered
from metatree.storage.store import Store
from metatree.tools.tool import Tool, ToolGroup
from metatree.trees.text import encodable
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard

_log = logging.getLogger("metatree")


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
    own_tools: bool | None = None,
    permit: Permit | _AskPerson | None = None,
    fallbacks: Sequence[Fallback | _AskPerson] = (),
    concurrency: int = 1,
    second_look: bool = True,
    on_event: OnEvent | None = None,
    run_id: str | None = None,
    journal: str | Path | Journal | None = None,
    limits: Limits | None = None,
    blackboard: Blackboard | None = None,
    wait: bool | float = False,
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
        own_tools: whether the tools of the types that the tree was built with are offered too, on the nodes of these
            types, and those of plug-ins. None leaves out those of files (of folders, code, documents) unless a model or
            a tool caller of the caller's fills in arguments; False is for the given `tools` alone.
        permit: decides on calls of tools that change something: True, False, or None to leave it to the permissions
            that the tree's memory holds; without those they are refused. `ask_person`, given here or returned, puts
            what the memory does not permit to a person, whose "always" is remembered there.
        fallbacks: what to do when the tree is exhausted, in order; `ask_person` as a link puts it to a person.
        concurrency: how many effects may be in flight; above 1, each question is searched in a frame of its own.
        second_look: whether what was ruled out is offered once more before the search gives up.
        on_event: called with each trace entry as it is made.
        run_id: a name to resume by; a random one when None.
        journal: a file or a journal; None keeps the run in the tree's own memory, or in what it shares with machines.
            Where that can only be read, the run lives as long as this process, and a warning is logged.
        limits: see `Limits`.
        blackboard: the search is told what is on it, within `Settings.context_tokens`, and writes there what it does;
            questions for the person are put on it, and an answer there lets the run go on.
        wait: whether to wait for answers on the blackboard; a number is for at most so many seconds. Otherwise the
            run ends as `waiting`, and `resume` takes the answers from the board.

    Returns:
        What was found, also when a limit was reached, a person is waited for, or something failed.

    Raises:
        UserError: there is no question, no such node, or the run exists already.

    Example:
        >>> from metatree import Node, Tree, search
        >>> from metatree.testing.parts import ScriptedRouter
        >>> tree = Tree.create(":memory:")
        >>> _ = tree.add(Node(id="a", title="Auth", description="Login and tokens"), parent=tree.root)
        >>> _ = tree.add(Node(id="a1", title="tokens.py", content="TTL = 3600  # one hour"), parent="a")
        >>> found = search("How long do tokens live?", tree=tree, router=ScriptedRouter(["a1"]), returns="nodes", k=1)
        >>> [node.id for node in found.nodes]
        ['a1']
    """
    limits = limits or Limits()
    if not isinstance(tree, Tree):
        raise UserError(f"tree={tree!r}: give a Tree, from Tree.open(path) or build_tree(path)")
    if not isinstance(limits, Limits):
        raise UserError(f"limits={limits!r}: give Limits(…)")
    await begin()
    asked = _questions(questions)
    kinds = accepted_kinds(accept)
    if returns not in ("answer", "nodes"):
        raise UserError(f"returns={returns!r}: use 'answer' or 'nodes'")
    if k < 1:
        raise UserError(f"k={k}: use 1 or more")
    if concurrency < 1:
        raise UserError(f"concurrency={concurrency}: use 1 or more")
    start = _start(tree, start_node)
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
        own_tools=own_tools,
        permit=permit,
        fallbacks=fallbacks,
        concurrency=concurrency,
        limits=limits,
        on_event=on_event,
        run_id=run_id,
        link=None if blackboard is None else BoardLink(blackboard, run_id),
    )
    given = {
        "questions": asked,
        "context": context if run.link is None else run.link.context(context),
        "returns": returns,
        "k": k,
        "trail": [*tree.ancestors(start.id), start.id],
        "limits": limits_json(limits),
        "own_tools": own_tools,
        "second_look": second_look,
        "fallbacks": ["person" if f is ask_person else "call" for f in fallbacks],
        "apart": concurrency > 1 and returns == "answer" and len(asked) > 1,
        "accept": "function" if callable(accept) else kinds,
        "concurrency": concurrency,
        "tree": str(tree.path.absolute()) if tree.path else None,
        "board": None if run.link is None else run.link.place(),
    }
    with _Opened(journal, tree, create=True) as kept:
        first = first_record(run.machine, given, time.time())
        token = kept.create(run_id, run.machine.name, first)
        result = await run.drive(kept, run_id, token, fold(run.machine, [first]), {})
        go_on = partial(
            aresume,
            run_id,
            journal=kept,
            tree=tree,
            accept=accept,
            router=router,
            reader=reader,
            tool_caller=tool_caller,
            composer=composer,
            describer=describer,
            evidence=evidence,
            tools=tools,
            own_tools=own_tools,
            permit=permit,
            fallbacks=fallbacks,
            on_event=on_event,
            blackboard=blackboard,
        )
        return await when_answered(result, run.link, wait, partial(_pending, run, kept, run_id), go_on)


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
    own_tools: bool | None = None,
    permit: Permit | _AskPerson | None = None,
    fallbacks: Sequence[Fallback | _AskPerson] = (),
    on_event: OnEvent | None = None,
    limits: Limits | None = None,
    answers: Mapping[str, str] | None = None,
    blackboard: Blackboard | None = None,
    wait: bool | float = False,
) -> SearchResult:
    """Take a run up again after a crash, a limit, or while it waits for a person.

    What is in the journal is not done again. A run that has ended gives its result once more.

    Args:
        run_id: the run.
        journal: where it is; None looks in the tree's own memory.
        tree: None opens the tree that the run began with.
        accept, router, reader, tool_caller, composer, describer, evidence, tools, permit, fallbacks, on_event: as the
            run was begun with; parts are not kept in a journal.
        own_tools: None for what the run was begun with.
        limits: replace the earlier ones, None keeps them; what was used so far still counts.
        answers: question -> answer, for questions that the run put to a person.
        blackboard: None opens the one that the run began with, if it was in a file. Answers that are on it count.
        wait: as in `asearch`.

    Raises:
        UnknownRun: the journal does not know it.
        LeaseLost: another process is at work on it.
        UserError: an answer is to a question that was not asked.
    """
    if tree is None and journal is None:
        raise UserError("resume needs the tree or the journal that the run was kept in")
    with _Opened(journal, tree) as kept, ExitStack() as opened:
        machine = SearchMachine()
        records = kept.read(run_id)
        folded = fold(machine, records)
        ended = machine.ended(folded.state)
        if ended is not None:
            result = result_of(folded.state, folded.used, ended=ended, detail="", run_id=run_id)
            complete(result, folded.state, blackboard, tree)
            return result
        _answers_by_effect(folded, answers or {})
        given = folded.state.given
        if tree is None:
            if given["tree"] is None:
                raise UserError(f"run {run_id!r} searched a tree in memory: give that tree to resume")
            tree = opened.enter_context(Tree.open(given["tree"]))
        if accept is None and given["accept"] == "function":
            raise UserError(f"run {run_id!r} was begun with an accept function: give it to resume again")
        own_tools = given.get("own_tools") if own_tools is None else own_tools
        if blackboard is None:
            blackboard = opened.enter_context(reopened(given.get("board"), tree))
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
            own_tools=own_tools,
            permit=permit,
            fallbacks=fallbacks,
            concurrency=given["concurrency"],
            limits=limits or limits_of(folded.state.limits),
            on_event=on_event,
            run_id=run_id,
            link=None if blackboard is None else BoardLink(blackboard, run_id),
        )
        token = kept.acquire(run_id)
        try:
            records = kept.read(run_id)  # now that nobody else writes
            extra = [Record("resume", time.time())]
            if limits is not None:
                said = {"name": "limits", "value": limits_json(limits)}
                extra.append(Record("signal", time.time(), body=said))
            for seq, record in enumerate(extra, start=len(records)):
                kept.append(run_id, token, seq, record)
            folded = fold(machine, [*records, *extra])
            settled = _answers_by_effect(folded, answers or {})
            if run.link is not None:
                settled = run.link.answers(folded.pending.values()) | settled
        except BaseException:
            with suppress(Exception):
                kept.release(run_id, token, "failed")
            raise
        result = await run.drive(kept, run_id, token, folded, settled)
        go_on = partial(
            aresume,
            run_id,
            journal=kept,
            tree=tree,
            accept=accept,
            router=router,
            reader=reader,
            tool_caller=tool_caller,
            composer=composer,
            describer=describer,
            evidence=evidence,
            tools=tools,
            own_tools=own_tools,
            permit=permit,
            fallbacks=fallbacks,
            on_event=on_event,
            blackboard=blackboard,
        )
        return await when_answered(result, run.link, wait, partial(_pending, run, kept, run_id), go_on)


def _pending(run: Search, kept: Journal, run_id: str) -> list[Effect]:
    return list(fold(run.machine, kept.read(run_id)).pending.values())


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
        await asyncio.wait([task])  # until it has noted where it stopped


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
        detail, waiting = "", list[Effect]()
        if ended is None:
            last = records[-1]
            ended, detail = "failed", "not finished: resume it"
            if last.kind == "stop":
                ended, detail = last.body["ended"], last.body["detail"]
            if ended == "waiting":
                waiting = list(folded.pending.values())
                detail = waited_for(waiting)
        return result_of(
            folded.state, folded.used, ended=ended, detail=detail, run_id=run_id, waiting=waiting
        )


def cancel(run_id: str, *, journal: str | Path | Journal | None = None, tree: Tree | None = None) -> None:
    """Ask the process that works on a run to stop after the effects in flight."""
    with _Opened(journal, tree) as kept:
        kept.cancel(run_id)


class _Opened:
    """Opens the journal that was asked for, and closes what it opened."""

    def __init__(
        self, journal: str | Path | Journal | None, tree: Tree | None, *, create: bool = False
    ) -> None:
        self._journal = journal
        self._tree = tree
        self._create = create
        self._store: Store | None = None

    def __enter__(self) -> Journal:
        if isinstance(self._journal, str | Path):
            self._store = Store.open(Path(self._journal).expanduser(), create=self._create)
            return SqliteJournal(self._store)
        if self._journal is not None:
            return self._journal
        if self._tree is None:
            raise UserError("give the journal or the tree that the run was kept in")
        if self._tree.shared is not None:
            return self._tree.shared.journal
        alone = self._create and self._tree.memory.read_only
        if alone and self._tree.path is not None:
            _log.warning(
                "the tree in %s can only be read: this run is kept in memory, and cannot be resumed later",
                self._tree.path,
            )
        if alone or self._tree.memory.path is None:
            kept: MemoryJournal = self._tree.scratch.setdefault("journal", MemoryJournal())
            return kept
        return SqliteJournal(self._tree.memory)

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()


def _questions(questions: str | Sequence[str]) -> list[str]:
    asked = [questions] if isinstance(questions, str) else questions
    if (
        not isinstance(asked, Sequence)
        or not asked
        or not all(isinstance(q, str) and q.strip() for q in asked)
    ):
        raise UserError("there is no question, or an empty one: give one or more questions as text")
    different: dict[str, str] = {}
    for question in asked:
        different.setdefault(fold_question(question), encodable(question.strip()))
    return list(different.values())


def _start(tree: Tree, start_node: str | Node | None) -> Node:
    if start_node is None:
        return tree.get(tree.root)
    if not isinstance(start_node, str | Node):
        raise UserError(f"start_node={start_node!r}: give a node or its id; a tree is given as tree=")
    return tree.get(tree.resolve(start_node) if isinstance(start_node, str) else start_node)


def _answers_by_effect(folded: Folded[SearchState], answers: Mapping[str, str]) -> dict[int, dict[str, Any]]:
    """Match answers to the questions that the run waits with."""
    asked: dict[str, list[int]] = {}
    for effect in folded.pending.values():
        if effect.kind == "ask":
            asked.setdefault(fold_question(effect.payload["question"]), []).append(effect.id)
    settled: dict[int, dict[str, Any]] = {}
    for question, answer in answers.items():
        effects = asked.get(fold_question(question))
        if effects is None:
            waiting = waited_for(folded.pending.values()) or "nothing"
            raise UserError(f"the run did not ask {question!r}; it waits for: {waiting}")
        settled.update((effect_id, {"answer": answer}) for effect_id in effects)
    return settled
