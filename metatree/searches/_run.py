"""One search, ready to be driven: its tree, its parts and its limits, put together for the kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from metatree._util.secret_text import shapes_masked
from metatree.durable import Effect, Journal, Replayed, Runner
from metatree.errors import LeaseLost, MetatreeError, UserError
from metatree.node import Node
from metatree.notes.wishes import applying
from metatree.parts import as_evidence, embedded_parts, find_evidence, name_of, suite_named, whole_suite
from metatree.protocols import HasTraits, Suite
from metatree.result import Limits, SearchResult, TraceEntry
from metatree.searches._effects import ComposeAnswers, DescribeNode, FillArguments, ReadText, RouteMenu
from metatree.searches._machine import SearchMachine
from metatree.searches._menu import MenuMaker
from metatree.searches._off_loop import Home
from metatree.searches._options import Accept, OnEvent, RunOptions
from metatree.searches._result import result_of, trace_of
from metatree.searches._state import SearchState
from metatree.searches._toolbox import Toolbox
from metatree.searches._world import World, closest_to
from metatree.searches.fallback import ask_person
from metatree.searches.on_blackboard import BoardLink
from metatree.searches.source_tools import with_own
from metatree.tools.resource_pool import holding
from metatree.tools.tool import Tool, ToolGroup, ToolTree
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard

_KEPT_ELSEWHERE = ("questions", "depth", "nodes_created", "restarts", "effect_seconds")
"""Limits that the machine and the policies keep; the kernel keeps the others."""
_log = logging.getLogger("metatree")


def accepts_by_default(node: Node) -> bool:
    """Say whether `returns="nodes"` collects a node when nothing else is asked: a file, a definition, a tool, an
    action, or any other node with content."""
    return node.has_content or node.kind in ("file", "definition", "tool", "action")


class Search:
    """One run: its tree, its parts and its journal, ready to be driven.

    `search`, `asearch`, `astream` and `resume` are thin drivers around it.
    """

    def __init__(
        self,
        tree: Tree,
        options: RunOptions,
        *,
        home: Home,
        run_id: str,
        returns: str,
        concurrency: int,
        limits: Limits,
        ours: bool = True,
    ) -> None:
        for number, fallback in enumerate(options.fallbacks):
            if fallback is not ask_person and not callable(fallback):
                raise UserError(f"fallbacks[{number}] is {fallback!r}: give a function, or ask_person")
        self.home = home
        self.run_id = run_id
        self.tree = tree
        self.limits = limits
        self.concurrency = concurrency
        self.on_event = options.on_event
        self.link = link = None if options.blackboard is None else BoardLink(options.blackboard, run_id)
        """Its board, if any."""
        self.machine = SearchMachine()
        router, named = options.router, None
        if isinstance(router, str):
            named = suite_named(router)
            router = named.router
        evidence = as_evidence(options.evidence) if options.evidence else None
        if options.evidence is None:
            # The index is built where there is none: its hints save calls, and hold against a router that errs.
            evidence = find_evidence(tree, required=True)
        suite = whole_suite(
            router,
            options.reader,
            options.tool_caller,
            options.composer,
            options.describer,
            evidence=evidence,
            others=named,
        )
        embedded = embedded_parts(evidence)
        accepts = _accept_function(options.accept) if returns == "nodes" else None
        kinds = accepted_kinds(options.accept)
        filled = not suite.tool_caller.traits.by_rules
        # Who collects nodes calls no tools, and those of some types take long to load.
        own_tools = options.own_tools if accepts is None else False
        toolbox = Toolbox(
            tree=tree,
            tools=ToolTree(with_own(tree, _tools(options.tools), own_tools, filled=filled)),
            home=home,
            run_id=run_id,
            ours=ours,
            tool_caller=suite.tool_caller,
            evidence=evidence,
            describer=suite.describer,
            embedded=embedded,
            permit=options.permit,
            fallbacks=options.fallbacks,
            accepts=accepts,
            timeout_s=limits.effect_seconds,
            # No method: a search holds no cycles, so that it is freed when it ends. 64 searches with cycles left 19,000
            # objects to the interpreter's collector, which looked through all objects of the program in every second
            # run, for 0.1 s. Lost: tuning the collector, which belongs to the program.
            board=partial(_board, tree, link),
        )
        menus = MenuMaker(
            tree,
            evidence,
            accepts=accepts,
            candidates=tree.ids(kinds) if kinds and accepts and evidence else None,
            answers_outside_tree=toolbox.answers_outside_tree(),
            by_passages=suite.reader.traits.by_passages,
            has_tools=toolbox.has_tools if toolbox.tools else None,
        )
        world = World(
            tree=tree,
            home=home,
            router=suite.router,
            reader=suite.reader,
            composer=suite.composer,
            embedded=embedded,
            menus=menus,
            accepts=accepts,
            has_tools=toolbox.has_tools,
            tool_options=toolbox.options,
            timeout_s=limits.effect_seconds,
        )
        self._evidence = evidence
        self.has_evidence = evidence is not None
        self.by_model = [kind for kind, part in _parts_by_kind(suite).items() if part.traits.uses_model]
        """Kinds of effects for which a model is asked."""
        traits = suite.router.traits
        self.own_router = "" if traits.uses_model or traits.follows_evidence else name_of(suite.router)
        """The name of a router that asks no model, for which the embedded one may stand in."""
        self.asks_tools = suite.router.traits.follows_evidence and toolbox.asks_tools
        """Whether tools that questions ask for outright are called before anything is read."""
        self.by_probabilities = suite.router.traits.gives_probabilities
        """Whether what the router said of a menu holds when the search comes back to it."""
        self._menus = menus
        self._toolbox = toolbox
        self.handlers = world.handlers() | toolbox.handlers()
        self.policies = world.policies() | toolbox.policies()
        self._emitted = 0

    def notes(self, questions: Sequence[str]) -> list[dict[str, Any]]:
        """Return how the evidence reads questions, where that is not as they stand."""
        if self._evidence is None:
            return []
        try:
            notes = [self._evidence.note(question) for question in questions]
        except MetatreeError:
            raise
        except Exception:
            _log.warning("the evidence could not say how it reads the questions", exc_info=True)
            return []
        return [asdict(note) for note in notes if note is not None]

    def wishes(self, questions: Sequence[str], under: str) -> list[dict[str, Any]]:
        """Return what people want always that can apply to the questions."""
        if self._evidence is None:
            return []
        try:
            return [asdict(wish) for wish in applying(self.tree, questions, under, self._evidence.near)]
        except MetatreeError:
            raise
        except Exception:
            _log.warning("the evidence could not say which wishes apply", exc_info=True)
            return []

    def in_time(self, questions: Sequence[str]) -> bool:
        """Whether what is found is listed in the order of time."""
        return self._evidence is not None and all(map(self._evidence.in_time, questions))

    async def drive(
        self,
        journal: Journal,
        token: int,
        replayed: Replayed[SearchState],
        answers: Mapping[int, Any],
    ) -> SearchResult:
        """Carry the run on and return what it found; an error of the journal or the machine ends it as `failed`."""
        run_id = self.run_id
        self._menus.start = replayed.state.given["trail"][-1]
        self._toolbox.began = replayed.began
        self._emitted = 0 if replayed.seq == 1 else len(replayed.state.trace)
        self._emit(replayed.state)
        runner = Runner(
            self.machine,
            journal,
            run_id,
            token,
            handlers=self.handlers,
            policies=self.policies,
            limits=bounds_of(self.limits),
            concurrency=self.concurrency,
            on_step=self._emit if self.on_event or self.link else None,
        )
        try:
            with holding():
                finish = await runner.drive(replayed, answers=answers)
        except LeaseLost:
            raise
        except Exception as exc:
            detail = f"{type(exc).__name__}: {shapes_masked(str(exc))}"
            # What a caller can act on stands in the result; of what nobody expects, the place is of use.
            expected = isinstance(exc, MetatreeError)
            _log.log(
                logging.INFO if expected else logging.WARNING, "run %s failed", run_id, exc_info=not expected
            )
            return result_of(replayed.state, replayed.used, ended="failed", detail=detail, run_id=run_id)
        state = finish.state
        if finish.ended == "limit" and state.given["returns"] == "answer" and state.closest is None:
            roots = [frame for frame in state.frames.values() if frame.parent is None]
            open_ = dict.fromkeys(question for frame in roots for question in frame.open)
            state.closest = closest_to(list(open_), self._menus, self.tree)
        waiting = finish.waiting if finish.ended == "waiting" else ()
        result = result_of(
            finish.state,
            finish.used,
            ended=finish.ended,
            detail=waited_for(waiting) if waiting else finish.detail,
            run_id=run_id,
            waiting=waiting,
        )
        if self.link is not None:
            self.link.finish(result)
        return result

    def _emit(self, state: SearchState) -> None:
        if self.link is not None:
            self.link.write(state)
        if self.on_event is None:
            return
        entries = trace_of(state.trace[self._emitted :])
        self._emitted += len(entries)
        if entries:
            self.home.tell(_tell, self.on_event, entries)


def _parts_by_kind(suite: Suite) -> dict[str, HasTraits]:
    return {
        RouteMenu.kind: suite.router,
        ReadText.kind: suite.reader,
        FillArguments.kind: suite.tool_caller,
        DescribeNode.kind: suite.describer,
        ComposeAnswers.kind: suite.composer,
    }


def _tell(on_event: OnEvent, entries: Iterable[TraceEntry]) -> None:
    for entry in entries:
        try:
            on_event(entry)
        except Exception:
            _log.warning("on_event raised; the search goes on", exc_info=True)


def _board(tree: Tree, link: BoardLink | None) -> Blackboard:
    """Return the board for tools: that of the search, else the one in the tree's own memory."""
    from metatree.blackboard import Blackboard

    return Blackboard(tree) if link is None else link.board


def _tools(tools: Sequence[Tool | ToolGroup]) -> Sequence[Tool | ToolGroup]:
    """Return tools that a caller gave; raises `UserError` for what is none."""
    ToolTree(tools)
    return tools


def _accept_function(accept: Accept | None) -> Callable[[Node], bool]:
    if accept is None:
        return accepts_by_default
    if callable(accept):
        return accept
    kinds = frozenset(accepted_kinds(accept) or ())
    return lambda node: node.kind in kinds


def accepted_kinds(accept: Accept | None) -> list[str] | None:
    """Return the kinds of nodes that are accepted, None when a function or the default decides.

    Raises:
        UserError: it is neither kinds nor a function.
    """
    if accept is None or callable(accept):
        return None
    kinds = [accept] if isinstance(accept, str) else sorted(accept) if _is_texts(accept) else []
    if not kinds:
        raise UserError(
            f"accept={accept!r}: give kinds of nodes, such as ['file', 'definition'], or a function"
        )
    return kinds


def _is_texts(value: object) -> bool:
    return isinstance(value, Collection) and all(isinstance(item, str) for item in value)


def waited_for(effects: Iterable[Effect]) -> str:
    """Return the questions that a run waits with, as the detail of its result."""
    return "; ".join(effect.payload.question for effect in effects if effect.kind == "ask")


def limits_json(limits: Limits) -> dict[str, Any]:
    """Return limits as the journal keeps them."""
    values = {field.name: getattr(limits, field.name) for field in fields(limits)}
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}


def limits_of(values: Mapping[str, Any]) -> Limits:
    """Return limits from what the journal kept of them."""
    cost = values["cost_usd"]
    return Limits(**{**values, "cost_usd": None if cost is None else Decimal(cost)})


def bounds_of(limits: Limits) -> dict[str, float]:
    """Return the limits that the kernel keeps."""
    bounds: dict[str, float] = {}
    for field in fields(limits):
        value = getattr(limits, field.name)
        if value is not None and field.name not in _KEPT_ELSEWHERE:
            bounds[field.name] = float(value)
    return bounds
