"""metatree lets an agent find its way in memory: trees of nodes, searched by a router, with answers and sources."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatree.errors import MetatreeError, UserError
from metatree.node import Node, Source
from metatree.protocols import (
    Answer,
    Composer,
    ComposeRequest,
    Describer,
    DescribeRequest,
    Description,
    EarlierStatement,
    Evidence,
    Option,
    Passage,
    Reader,
    Reading,
    ReadRequest,
    RouteDecision,
    Router,
    RouteRequest,
    Scored,
    Suite,
    ToolCaller,
    ToolRequest,
    ToolSpec,
    Traits,
)
from metatree.result import (
    ClosestPassage,
    EarlierAnswer,
    Ended,
    Limits,
    NodeRef,
    PersonQuestion,
    QuestionAnswer,
    QuestionNote,
    Quote,
    SearchResult,
    TraceEntry,
    TraceEvent,
    Usage,
    Wish,
)
from metatree.searches.fallback import FallbackRequest, FallbackResult, ask_person
from metatree.tools.tool import Tool, ToolGroup, tool
from metatree.trees.source_types import SourceRef
from metatree.trees.tree import Tree
from metatree.version import RELEASE, warn_of_other_project

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard, Merge
    from metatree.durable import RunInfo
    from metatree.notes.notes import Forgotten, Remembered, forget, memories, remember
    from metatree.searches.api import aresume, asearch, astream, cancel, load_run, resume, runs, search
    from metatree.settings import Settings

__all__ = [
    "Answer",
    "Blackboard",
    "ClosestPassage",
    "ComposeRequest",
    "Composer",
    "DescribeRequest",
    "Describer",
    "Description",
    "EarlierAnswer",
    "EarlierStatement",
    "Ended",
    "Evidence",
    "FallbackRequest",
    "FallbackResult",
    "Forgotten",
    "Limits",
    "Merge",
    "MetatreeError",
    "Node",
    "NodeRef",
    "Option",
    "Passage",
    "PersonQuestion",
    "QuestionAnswer",
    "QuestionNote",
    "Quote",
    "ReadRequest",
    "Reader",
    "Reading",
    "Remembered",
    "RouteDecision",
    "RouteRequest",
    "Router",
    "RunInfo",
    "Scored",
    "SearchResult",
    "Settings",
    "Source",
    "SourceRef",
    "Suite",
    "Tool",
    "ToolCaller",
    "ToolGroup",
    "ToolRequest",
    "ToolSpec",
    "TraceEntry",
    "TraceEvent",
    "Traits",
    "Tree",
    "Usage",
    "UserError",
    "Wish",
    "aresume",
    "asearch",
    "ask_person",
    "astream",
    "cancel",
    "forget",
    "load_run",
    "memories",
    "remember",
    "resume",
    "runs",
    "search",
    "tool",
]

_NOTES = "metatree.notes.notes"
_SEARCH = "metatree.searches.api"
_LATER = {
    "Blackboard": "metatree.blackboard",
    "Forgotten": _NOTES,
    "Merge": "metatree.blackboard",
    "Remembered": _NOTES,
    "RunInfo": "metatree.durable",
    "Settings": "metatree.settings",
    "aresume": _SEARCH,
    "asearch": _SEARCH,
    "astream": _SEARCH,
    "cancel": _SEARCH,
    "forget": _NOTES,
    "load_run": _SEARCH,
    "memories": _NOTES,
    "remember": _NOTES,
    "resume": _SEARCH,
    "runs": _SEARCH,
    "search": _SEARCH,
}

__version__ = RELEASE
warn_of_other_project(Path(__file__).parent)


def __getattr__(name: str) -> Any:
    """Import what a program may not use, the search with asyncio above all, when it is first asked for."""
    if name in _LATER:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
