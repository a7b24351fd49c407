"""metatree lets an agent find its way in memory: trees of nodes, searched by a router, with answers and sources."""

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
    Evidence,
    Option,
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
)
from metatree.result import Limits, NodeRef, QuestionAnswer, Quote, SearchResult, TraceEntry, Usage
from metatree.searches.fallback import FallbackRequest, FallbackResult, ask_person
from metatree.tools.tool import Tool, ToolGroup, tool
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard
    from metatree.notes.notes import forget, memories, remember
    from metatree.searches.api import aresume, asearch, astream, cancel, load_run, resume, runs, search
    from metatree.settings import Settings

__all__ = [
    "Answer",
    "Blackboard",
    "ComposeRequest",
    "Composer",
    "DescribeRequest",
    "Describer",
    "Description",
    "Evidence",
    "FallbackRequest",
    "FallbackResult",
    "Limits",
    "MetatreeError",
    "Node",
    "NodeRef",
    "Option",
    "QuestionAnswer",
    "Quote",
    "ReadRequest",
    "Reader",
    "Reading",
    "RouteDecision",
    "RouteRequest",
    "Router",
    "Scored",
    "SearchResult",
    "Settings",
    "Source",
    "Suite",
    "Tool",
    "ToolCaller",
    "ToolGroup",
    "ToolRequest",
    "ToolSpec",
    "TraceEntry",
    "Tree",
    "Usage",
    "UserError",
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

_REMEMBERING = "metatree.notes.notes"
_SEARCHING = "metatree.searches.api"
_LATER = {
    "Blackboard": "metatree.blackboard",
    "Settings": "metatree.settings",
    "aresume": _SEARCHING,
    "asearch": _SEARCHING,
    "astream": _SEARCHING,
    "cancel": _SEARCHING,
    "forget": _REMEMBERING,
    "load_run": _SEARCHING,
    "memories": _REMEMBERING,
    "remember": _REMEMBERING,
    "resume": _SEARCHING,
    "runs": _SEARCHING,
    "search": _SEARCHING,
}


def __getattr__(name: str) -> Any:
    """Import what a program may not use, the search with asyncio above all, when it is first asked for."""
    if name in _LATER:
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
