"""Parts that think for metatree: the text index and its evidence, the embedded router that needs no model, those that
ask a language model or a person, and wrappers around any of them.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.testing.parts import ScriptedRouter
    from metatree_routers.decisions import DecisionReader, DecisionRouter
    from metatree_routers.embedded.composer import EmbeddedComposer
    from metatree_routers.embedded.describer import EmbeddedDescriber
    from metatree_routers.embedded.reader import EmbeddedReader
    from metatree_routers.embedded.router import EmbeddedRouter
    from metatree_routers.embedded.suite import embedded_suite
    from metatree_routers.embedded.tool_caller import EmbeddedToolCaller
    from metatree_routers.evidence.evidence import TextEvidence, text_evidence
    from metatree_routers.evidence.report import FileEvidence, FoundDefinition, FoundFile, rank_files
    from metatree_routers.human import HumanRouter
    from metatree_routers.llm.describe_tree import describe_tree
    from metatree_routers.llm.router import LLMRouter
    from metatree_routers.wrappers.cached import CachedRouter
    from metatree_routers.wrappers.fallback import FallbackRouter
    from metatree_routers.wrappers.limited import LimitedRouter
    from metatree_routers.wrappers.recorded import RecordedRouter, ReplayedRouter

_MODULES = {
    "CachedRouter": "metatree_routers.wrappers.cached",
    "DecisionReader": "metatree_routers.decisions",
    "DecisionRouter": "metatree_routers.decisions",
    "EmbeddedComposer": "metatree_routers.embedded.composer",
    "EmbeddedDescriber": "metatree_routers.embedded.describer",
    "EmbeddedReader": "metatree_routers.embedded.reader",
    "EmbeddedRouter": "metatree_routers.embedded.router",
    "EmbeddedToolCaller": "metatree_routers.embedded.tool_caller",
    "FallbackRouter": "metatree_routers.wrappers.fallback",
    "FileEvidence": "metatree_routers.evidence.report",
    "FoundDefinition": "metatree_routers.evidence.report",
    "FoundFile": "metatree_routers.evidence.report",
    "HumanRouter": "metatree_routers.human",
    "LLMRouter": "metatree_routers.llm.router",
    "LimitedRouter": "metatree_routers.wrappers.limited",
    "RecordedRouter": "metatree_routers.wrappers.recorded",
    "ReplayedRouter": "metatree_routers.wrappers.recorded",
    "ScriptedRouter": "metatree.testing.parts",
    "TextEvidence": "metatree_routers.evidence.evidence",
    "describe_tree": "metatree_routers.llm.describe_tree",
    "embedded_suite": "metatree_routers.embedded.suite",
    "rank_files": "metatree_routers.evidence.report",
    "text_evidence": "metatree_routers.evidence.evidence",
}

__all__ = [
    "CachedRouter",
    "DecisionReader",
    "DecisionRouter",
    "EmbeddedComposer",
    "EmbeddedDescriber",
    "EmbeddedReader",
    "EmbeddedRouter",
    "EmbeddedToolCaller",
    "FallbackRouter",
    "FileEvidence",
    "FoundDefinition",
    "FoundFile",
    "HumanRouter",
    "LLMRouter",
    "LimitedRouter",
    "RecordedRouter",
    "ReplayedRouter",
    "ScriptedRouter",
    "TextEvidence",
    "describe_tree",
    "embedded_suite",
    "rank_files",
    "text_evidence",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
