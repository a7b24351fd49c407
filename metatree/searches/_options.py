"""What `search` and its relatives are given, written once: types and defaults of every option.

Lost: writing the parameters out at each function (seven lists of some twenty that had to agree); `**options: Any` at
all but one (nobody sees what there is); `Unpack` of a TypedDict (names and types, but no default is shown).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from metatree.durable import Journal
from metatree.node import Node
from metatree.protocols import (
    SURE,
    AnyComposer,
    AnyDescriber,
    AnyEvidence,
    AnyReader,
    AnyRouter,
    AnyToolCaller,
)
from metatree.result import Limits, TraceEntry
from metatree.searches.fallback import Fallback, _AskPerson
from metatree.tools.tool import Tool, ToolGroup
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard

P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741 - options
R = TypeVar("R")

Accept = Collection[str] | Callable[[Node], bool]
OnEvent = Callable[[TraceEntry], object]
Verdict = bool | None | _AskPerson
Permit = Callable[[Tool, Mapping[str, Any]], "Verdict | Awaitable[Verdict]"]
"""Decides whether a tool that changes something may be called with these arguments.

None leaves it to the permissions that the memory holds; `ask_person` does so too, and puts the question to a person
where there is none.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunOptions:
    """What a run is given each time that it is started or resumed; `asearch` says what each option means."""

    tree: Tree | None = None
    accept: Accept | None = None
    router: AnyRouter | str | None = None
    reader: AnyReader | None = None
    tool_caller: AnyToolCaller | None = None
    composer: AnyComposer | None = None
    describer: AnyDescriber | None = None
    evidence: AnyEvidence | Literal[False] | None = None
    tools: Sequence[Tool | ToolGroup] = ()
    own_tools: bool | None = None
    permit: Permit | _AskPerson | None = None
    fallbacks: Sequence[Fallback | _AskPerson] = ()
    on_event: OnEvent | None = None
    journal: str | Path | Journal | None = None
    limits: Limits | None = None
    blackboard: Blackboard | None = None
    wait: bool | float = False


@dataclass(frozen=True, slots=True, eq=False)
class SearchOptions(RunOptions):
    """What `search`, `asearch` and `astream` are given."""

    questions: str | Sequence[str]
    start_node: str | Node | None = None
    _: KW_ONLY
    tree: Tree = field(kw_only=True)
    returns: Literal["answer", "nodes"] = "answer"
    k: int = 5
    context: str = ""
    concurrency: int = 1
    sure: float = SURE
    second_look: bool = True
    run_id: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ResumeOptions(RunOptions):
    """What `resume` and `aresume` are given."""

    run_id: str
    _: KW_ONLY
    answers: Mapping[str, str] | None = None


def resume_options(options: RunOptions, run_id: str, **changed: Any) -> ResumeOptions:
    """Return the options that resume a run with what it was given before."""
    given = {each.name: getattr(options, each.name) for each in fields(RunOptions)}
    return ResumeOptions(run_id, **{**given, **changed})


def takes(options: Callable[P, O]) -> Callable[[Callable[[O], R]], Callable[P, R]]:
    """Give a function of options the parameters of these options, for callers, type checkers and `help`."""

    def decorate(function: Callable[[O], R]) -> Callable[P, R]:
        wrapper: Any
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def wrapper(*args: P.args, **named: P.kwargs) -> Any:
                return await function(options(*args, **named))

        else:

            @wraps(function)
            def wrapper(*args: P.args, **named: P.kwargs) -> Any:
                return function(options(*args, **named))

        signature = inspect.signature(options)
        returned = inspect.signature(function).return_annotation
        wrapper.__signature__ = signature.replace(return_annotation=returned)
        return cast(Callable[P, R], wrapper)

    return decorate
