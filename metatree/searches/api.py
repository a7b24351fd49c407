"""`search` and its relatives: start a run, take one up again, watch one, look at those that were."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from metatree._util.links import real
from metatree._util.named_file import typed_path
from metatree._util.threads import run_apart
from metatree.durable import Effect, Journal, MemoryJournal, Replayed, RunInfo, first_record, replay, take_up
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import UserError
from metatree.node import Node
from metatree.notes.permissions import Permissions
from metatree.result import Limits, SearchResult, TraceEntry
from metatree.searches._context import question_key
from metatree.searches._effects import FillArguments, ReadText
from metatree.searches._machine import SearchMachine
from metatree.searches._off_loop import Home, off_caller_loop
from metatree.searches._options import ResumeOptions, RunOptions, SearchOptions, resume_options, takes
from metatree.searches._questions import split_questions
from metatree.searches._result import result_of
from metatree.searches._run import Search, accepted_kinds, limits_json, limits_of, waited_for
from metatree.searches._stagger import begin
from metatree.searches._state import MOST_FRUITLESS, MOST_IN_VAIN, SearchState
from metatree.searches.fallback import ask_person
from metatree.searches.on_blackboard import complete, reopened, when_answered
from metatree.storage.store import Store
from metatree.trees.text import encodable
from metatree.trees.tree import Tree

_log = logging.getLogger("metatree")


@takes(SearchOptions)
async def asearch(options: SearchOptions) -> SearchResult:
    """Search a tree for answers, or for the nodes themselves.

    Args:
        questions: one or several; a string that asks several things (`What is A? And who wrote B?`) is cut into them,
            unless nodes are collected.
        start_node: explored first, then its parent's other children, and so on up to the root. None is the root.
        tree: what is searched.
        returns: `answer`, or `nodes` to collect nodes without reading them.
        k: how many nodes are collected at most.
        accept: for `nodes`: kinds, or a function that says which nodes count.
        context: what the router and the reader should know besides.
        router: an object with `route`, or a plain function of a `RouteRequest` that returns a `RouteDecision`, sync or
            async: `router=lambda request: RouteDecision(request.options[0].id)`; or the name of an installed one, as
            for `--router`: `"openai/gpt-4.1"`. None for the embedded one, which needs no model.
        reader, tool_caller, composer, describer: what reads nodes, fills in the arguments of tools, joins several
            answers, describes nodes that tools make. None for those that come with the router.
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
        sure: how likely an answer must be right to be claimed, in [0, 1], for readers that can tell, as the embedded
            one can: what is less so leaves its question open, and is among `closest`.
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
    return await off_caller_loop(partial(_search, options))


@takes(ResumeOptions)
async def aresume(options: ResumeOptions) -> SearchResult:
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
    return await off_caller_loop(partial(_resume, options))


@takes(SearchOptions)
def search(options: SearchOptions) -> SearchResult:
    """Do what `asearch` does, and wait for it; works inside a running event loop too.

    It runs on a loop of its own in a fresh thread, with the caller's context variables. A router whose client is
    bound to a loop needs `asearch`, whose help says what each option means. `router` may be a plain function:
    `Router | Callable[[RouteRequest], RouteDecision | Awaitable[RouteDecision]]`.
    """
    return run_apart(lambda: _search(options, Home()))


@takes(ResumeOptions)
def resume(options: ResumeOptions) -> SearchResult:
    """Do what `aresume` does, and wait for it; its help says what each option means."""
    return run_apart(lambda: _resume(options, Home()))


@takes(SearchOptions)
async def astream(options: SearchOptions) -> AsyncIterator[TraceEntry | SearchResult]:
    """Yield each trace entry as it is made, and the result at last; takes what `asearch` takes."""
    queue: asyncio.Queue[TraceEntry | None] = asyncio.Queue()

    def put(entry: TraceEntry) -> None:
        queue.put_nowait(entry)
        if options.on_event is not None:
            options.on_event(entry)

    task = asyncio.ensure_future(off_caller_loop(partial(_search, replace(options, on_event=put))))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (entry := await queue.get()) is not None:
            yield entry
        yield task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])  # until it has noted where it stopped


async def _search(options: SearchOptions, home: Home) -> SearchResult:
    tree, limits = options.tree, options.limits or Limits()
    if not isinstance(tree, Tree):
        raise UserError(f"tree={tree!r}: give a Tree, from Tree.open(path) or build_tree(path)")
    if not isinstance(limits, Limits):
        raise UserError(f"limits={limits!r}: give Limits(…)")
    await begin()
    questions = _questions(options.questions, returns=options.returns)
    kinds = accepted_kinds(options.accept)
    if options.returns not in ("answer", "nodes"):
        raise UserError(f"returns={options.returns!r}: use 'answer' or 'nodes'")
    if options.k < 1:
        raise UserError(f"k={options.k}: use 1 or more")
    if not 0.0 <= options.sure <= 1.0:
        raise UserError(f"sure={options.sure}: use a number from 0 to 1")
    if options.concurrency < 1:
        raise UserError(f"concurrency={options.concurrency}: use 1 or more")
    start = _start(tree, options.start_node)
    run_id = options.run_id or uuid.uuid4().hex[:12]
    run = Search(
        tree,
        options,
        home=home,
        run_id=run_id,
        returns=options.returns,
        concurrency=options.concurrency,
        limits=limits,
    )
    given = {
        "questions": questions,
        "context": options.context if run.link is None else run.link.context(options.context),
        "returns": options.returns,
        "k": options.k,
        "trail": [*tree.ancestors(start.id), start.id],
        "limits": limits_json(limits),
        "own_tools": options.own_tools,
        "sure": options.sure,
        "notes": run.notes(questions),
        "wishes": run.wishes(questions, start.id),
        "in_time": options.returns == "nodes" and run.in_time(questions),
        "by_model": run.by_model,
        "own_router": run.own_router,
        "has_evidence": run.has_evidence,
        "last_reads": ReadText.kind in run.by_model,
        "most_fruitless": MOST_FRUITLESS if run.by_model and run.has_evidence else None,
        "most_in_vain": MOST_IN_VAIN if FillArguments.kind in run.by_model else None,
        "by_probabilities": run.by_probabilities,
        "asked_tools": run.asks_tools and options.returns == "answer",
        "second_look": options.second_look,
        "fallbacks": ["person" if f is ask_person else "call" for f in options.fallbacks],
        "separate_frames": options.concurrency > 1 and options.returns == "answer" and len(questions) > 1,
        "accept": "function" if callable(options.accept) else kinds,
        "concurrency": options.concurrency,
        "tree": str(real(tree.path)) if tree.path else None,
        "board": None if run.link is None else run.link.place(),
    }
    with _opened(options.journal, tree, create=True) as open_journal:
        first = first_record(run.machine, given, time.time())
        token = open_journal.create(run_id, run.machine.name, first)
        result = await run.drive(open_journal, token, replay(run.machine, [first]), {})
        return await _when_answered(result, run, open_journal, options)


async def _resume(options: ResumeOptions, home: Home) -> SearchResult:
    run_id, tree, blackboard, answers = (
        options.run_id,
        options.tree,
        options.blackboard,
        options.answers or {},
    )
    if tree is None and options.journal is None:
        raise UserError("resume needs the tree or the journal that the run was kept in")
    with _opened(options.journal, tree) as open_journal, ExitStack() as stack:
        machine = SearchMachine()
        records = open_journal.read(run_id)
        replayed = replay(machine, records)
        ended = machine.ended(replayed.state)
        ours = _is_ours(run_id, open_journal, tree)
        if ended is not None:
            result = result_of(replayed.state, replayed.used, ended=ended, detail="", run_id=run_id)
            complete(result, replayed.state, blackboard, tree, ours=ours)
            return result
        _answers_by_effect(replayed, answers)
        given = replayed.state.given
        if tree is None:
            if given["tree"] is None:
                raise UserError(f"run {run_id!r} searched a tree in memory: give that tree to resume")
            if not ours:
                raise UserError(f"run {run_id!r} was begun by somebody else: give the tree to resume it with")
            if (place := real(Path(given["tree"]))) != Path(given["tree"]):  # as git brings links
                raise UserError(
                    f"run {run_id!r} searched {given['tree']!r}, which leads to {str(place)!r} now: give the tree to"
                    " resume it with"
                )
            tree = stack.enter_context(Tree.open(place))
        if options.accept is None and given["accept"] == "function":
            raise UserError(f"run {run_id!r} was begun with an accept function: give it to resume again")
        if blackboard is None:
            blackboard = stack.enter_context(reopened(given.get("board"), tree, ours=ours))
        options = replace(
            options,
            tree=tree,
            accept=given["accept"] if options.accept is None else options.accept,
            own_tools=given.get("own_tools") if options.own_tools is None else options.own_tools,
            blackboard=blackboard,
        )
        run = Search(
            tree,
            options,
            home=home,
            run_id=run_id,
            returns=given["returns"],
            concurrency=given["concurrency"],
            limits=options.limits or limits_of(replayed.state.limits),
            ours=ours,
        )
        signals = [] if options.limits is None else [("limits", limits_json(options.limits))]
        token, replayed = take_up(machine, open_journal, run_id, *signals)
        try:
            settled = _answers_by_effect(replayed, answers)
            if run.link is not None:
                settled = run.link.answers(replayed.pending.values()) | settled
        except BaseException:
            with suppress(Exception):
                open_journal.release(run_id, token, "failed")
            raise
        result = await run.drive(open_journal, token, replayed, settled)
        return await _when_answered(result, run, open_journal, options)


async def _when_answered(
    result: SearchResult, run: Search, journal: Journal, options: RunOptions
) -> SearchResult:
    """Wait for answers on the board, if that was asked for, and resume the run with them."""
    go_on = resume_options(options, run.run_id, journal=journal, limits=None, wait=False)
    pending = partial(_pending, run, journal)
    return await when_answered(result, run.link, options.wait, pending, partial(_resume, go_on, run.home))


def _pending(run: Search, journal: Journal) -> list[Effect]:
    return list(replay(run.machine, journal.read(run.run_id)).pending.values())


def runs(*, journal: str | Path | Journal | None = None, tree: Tree | None = None) -> list[RunInfo]:
    """List the runs of a journal, or of a tree's own memory, the last changed first."""
    with _opened(journal, tree) as open_journal:
        return list(open_journal.runs())


def load_run(
    run_id: str, *, journal: str | Path | Journal | None = None, tree: Tree | None = None
) -> SearchResult:
    """Return what a run has found and done so far, from its journal alone.

    `ended` is `failed` with the detail `not finished` when its process died or is still at work.
    """
    with _opened(journal, tree) as open_journal:
        records = open_journal.read(run_id)
        machine = SearchMachine()
        replayed = replay(machine, records)
        ended = machine.ended(replayed.state)
        detail, waiting = "", list[Effect]()
        if ended is None:
            last = records[-1]
            ended, detail = "failed", "not finished: resume it"
            if last.kind == "stop":
                ended, detail = last.body["ended"], last.body["detail"]
            if ended == "waiting":
                waiting = list(replayed.pending.values())
                detail = waited_for(waiting)
        return result_of(
            replayed.state, replayed.used, ended=ended, detail=detail, run_id=run_id, waiting=waiting
        )


def cancel(run_id: str, *, journal: str | Path | Journal | None = None, tree: Tree | None = None) -> None:
    """Ask the process that works on a run to stop after the effects in flight."""
    with _opened(journal, tree) as open_journal:
        open_journal.cancel(run_id)


@contextmanager
def _opened(
    journal: str | Path | Journal | None, tree: Tree | None, *, create: bool = False
) -> Iterator[Journal]:
    """Open the journal that was asked for, for the block."""
    if isinstance(journal, str | Path):
        with Store.open(typed_path(journal), create=create) as store:
            yield SqlJournal(store)
    elif journal is not None:
        yield journal
    elif tree is None:
        raise UserError("give the journal or the tree that the run was kept in")
    elif tree.shared is not None:
        yield tree.shared.journal
    else:
        yield _own_journal(tree, create)


def _is_ours(run_id: str, journal: Journal, tree: Tree | None) -> bool:
    """Whether this user began a run: only then what it says of boards elsewhere, and of a person's yes, counts."""
    stores = [] if tree is None else [tree.memory]
    if isinstance(journal, SqlJournal) and isinstance(journal.database, Store):
        if journal.database.read_only:  # it was perhaps accepted, and could not be told so
            return False
        stores.append(journal.database)
    return all(Permissions(store).may_ask(run_id) for store in stores)


def _own_journal(tree: Tree, create: bool) -> Journal:
    """Return the journal in a tree's memory, or one in this process where nothing can be kept there."""
    alone = create and tree.memory.read_only
    if alone and tree.path is not None:
        _log.warning(
            "the tree in %s can only be read: this run is kept in memory, and cannot be resumed later",
            tree.path,
        )
    if alone or tree.memory.path is None:
        stored: MemoryJournal = tree.scratch.setdefault("journal", MemoryJournal())
        return stored
    return SqlJournal(tree.memory)


def _questions(questions: str | Sequence[str], *, returns: str) -> list[str]:
    listed = [questions] if isinstance(questions, str) else questions
    if (
        not isinstance(listed, Sequence)
        or not listed
        or not all(isinstance(q, str) and q.strip() for q in listed)
    ):
        raise UserError("there is no question, or an empty one: give one or more questions as text")
    different: dict[str, str] = {}
    asked = (q for text in listed for q in (split_questions(text) if returns == "answer" else [text]))
    for question in asked:
        different.setdefault(question_key(question), encodable(question.strip()))
    return list(different.values())


def _start(tree: Tree, start_node: str | Node | None) -> Node:
    if start_node is None:
        return tree.get(tree.root)
    if not isinstance(start_node, str | Node):
        raise UserError(f"start_node={start_node!r}: give a node or its id; a tree is given as tree=")
    return tree.get(tree.resolve(start_node) if isinstance(start_node, str) else start_node)


def _answers_by_effect(
    replayed: Replayed[SearchState], answers: Mapping[str, str]
) -> dict[int, dict[str, Any]]:
    """Match answers to the questions that the run waits with."""
    waiting_effects: dict[str, list[int]] = {}
    for effect in replayed.pending.values():
        if effect.kind == "ask":
            waiting_effects.setdefault(question_key(effect.payload.question), []).append(effect.id)
    settled: dict[int, dict[str, Any]] = {}
    for question, answer in answers.items():
        effects = waiting_effects.get(question_key(question))
        if effects is None:
            waiting = waited_for(replayed.pending.values()) or "nothing"
            raise UserError(f"the run did not ask {question!r}; it waits for: {waiting}")
        settled.update((effect_id, {"answer": answer}) for effect_id in effects)
    return settled
