"""One search, ready to be driven: its tree, its parts and its limits, put together for the kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from metatree.durable import Effect, Folded, Journal, Runner
from metatree.errors import LeaseLost, UserError
from metatree.node import Node
from metatree.protocols import Composer, Describer, Evidence, Reader, Router, ToolCaller
from metatree.result import Limits, SearchResult, TraceEntry
from metatree.searches._machine import SearchMachine
from metatree.searches._menu import MenuMaker
from metatree.searches._result import result_of, trace_of
from metatree.searches._state import SearchState
from metatree.searches._toolbox import Permit, Toolbox
from metatree.searches._world import World
from metatree.searches.fallback import Fallback, _AskPerson, ask_person
from metatree.searches.on_blackboard import BoardLink
from metatree.searches.parts import find_evidence, require, whole_suite
from metatree.searches.source_tools import with_own
from metatree.tools.resource_pool import holding
from metatree.tools.tool import Tool, ToolGroup, ToolTree
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard

Accept = Collection[str] | Callable[[Node], bool]
OnEvent = Callable[[TraceEntry], object]
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
        own_tools: bool | None,
        permit: Permit | _AskPerson | None,
        fallbacks: Sequence[Fallback | _AskPerson],
        concurrency: int,
        limits: Limits,
        on_event: OnEvent | None,
        run_id: str,
        link: BoardLink | None,
    ) -> None:
        for number, fallback in enumerate(fallbacks):
            if fallback is not ask_person and not callable(fallback):
                raise UserError(f"fallbacks[{number}] is {fallback!r}: give a function, or ask_person")
        if evidence:
            require(evidence, "evidence", "score")
        self.tree = tree
        self.limits = limits
        self.concurrency = concurrency
        self.on_event = on_event
        self.link = link
        """Its board, if any."""
        self.machine = SearchMachine()
        found = find_evidence(tree, required=router is None) if evidence is None else evidence or None
        suite = whole_suite(router, reader, tool_caller, composer, describer, evidence=found)
        accepts = _accept_function(accept) if returns == "nodes" else None
        kinds = accepted_kinds(accept)
        filled = not getattr(suite.tool_caller, "by_rules", False)
        toolbox = Toolbox(
            tree,
            ToolTree(with_own(tree, _tools(tools), own_tools, filled=filled)),
            run_id=run_id,
            tool_caller=suite.tool_caller,
            describer=suite.describer,
            permit=permit,
            fallbacks=fallbacks,
            accepts=accepts,
            timeout_s=limits.effect_seconds,
            board=partial(
                _board, tree, link
            ),  # no method, or a search would be garbage that only a collector finds
        )
        menus = MenuMaker(
            tree,
            found,
            accepts=accepts,
            among=tree.ids(kinds) if kinds and accepts and found else None,
            beyond=toolbox.beyond(),
        )
        world = World(
            tree,
            router=suite.router,
            reader=suite.reader,
            composer=suite.composer,
            menus=menus,
            accepts=accepts,
            has_tools=toolbox.has_tools,
            tool_options=toolbox.options,
            timeout_s=limits.effect_seconds,
        )
        self._menus = menus
        self._toolbox = toolbox
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
        self._menus.start = folded.state.given["trail"][-1]
        self._toolbox.began = folded.began
        self._emitted = 0 if folded.seq == 1 else len(folded.state.trace)
        self._emit(folded.state)
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
                finish = await runner.drive(folded, answers=answers)
        except LeaseLost:
            raise
        except Exception as exc:
            _log.warning("run %s failed", run_id, exc_info=True)
            detail = f"{type(exc).__name__}: {exc}"
            return result_of(folded.state, folded.used, ended="failed", detail=detail, run_id=run_id)
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
        for entry in trace_of(state.trace[self._emitted :]):
            self._emitted += 1
            try:
                self.on_event(entry)
            except Exception:
                _log.warning("on_event raised; the search goes on", exc_info=True)


def _board(tree: Tree, link: BoardLink | None) -> Blackboard:
    """Return the board for tools: that of the search, else the one in the tree's own memory."""
    from metatree.blackboard import Blackboard

    return Blackboard(tree) if link is None else link.board


def _tools(given: Sequence[Tool | ToolGroup]) -> Sequence[Tool | ToolGroup]:
    """Return tools that a caller gave; raises `UserError` for what is none."""
    ToolTree(given)
    return given


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
    return "; ".join(str(effect.payload["question"]) for effect in effects if effect.kind == "ask")


def limits_json(limits: Limits) -> dict[str, Any]:
    """Return limits as the journal keeps them."""
    kept = {field.name: getattr(limits, field.name) for field in fields(limits)}
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in kept.items()}


def limits_of(kept: Mapping[str, Any]) -> Limits:
    """Return limits from what the journal kept of them."""
    cost = kept["cost_usd"]
    return Limits(**{**kept, "cost_usd": None if cost is None else Decimal(cost)})


def bounds_of(limits: Limits) -> dict[str, float]:
    """Return the limits that the kernel keeps."""
    bounds: dict[str, float] = {}
    for field in fields(limits):
        value = getattr(limits, field.name)
        if value is not None and field.name not in _KEPT_ELSEWHERE:
            bounds[field.name] = float(value)
    return bounds
