"""Parts that think for metatree: the text index and its evidence, the embedded router that needs no model, those that
ask a language model or a person, and wrappers around any of them.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.testing import ScriptedRouter
    from metatree_routers.cached import CachedRouter
    from metatree_routers.composer import EmbeddedComposer
    from metatree_routers.describer import EmbeddedDescriber
    from metatree_routers.embedded import embedded_suite
    from metatree_routers.evidence import TextEvidence, text_evidence
    from metatree_routers.fallback import FallbackRouter
    from metatree_routers.files import FileEvidence, FoundDefinition, FoundFile, rank_files
    from metatree_routers.human import HumanRouter
    from metatree_routers.limited import LimitedRouter
    from metatree_routers.llm.descriptions import describe_tree
    from metatree_routers.llm.router import LLMRouter
    from metatree_routers.reader import EmbeddedReader
    from metatree_routers.recorded import RecordedRouter, ReplayedRouter
    from metatree_routers.router import EmbeddedRouter
    from metatree_routers.tool_caller import EmbeddedToolCaller

_MODULES = {
    "CachedRouter": "metatree_routers.cached",
    "EmbeddedComposer": "metatree_routers.composer",
    "EmbeddedDescriber": "metatree_routers.describer",
    "EmbeddedReader": "metatree_routers.reader",
    "EmbeddedRouter": "metatree_routers.router",
    "EmbeddedToolCaller": "metatree_routers.tool_caller",
    "FallbackRouter": "metatree_routers.fallback",
    "FileEvidence": "metatree_routers.files",
    "FoundDefinition": "metatree_routers.files",
    "FoundFile": "metatree_routers.files",
    "HumanRouter": "metatree_routers.human",
    "LLMRouter": "metatree_routers.llm.router",
    "LimitedRouter": "metatree_routers.limited",
    "RecordedRouter": "metatree_routers.recorded",
    "ReplayedRouter": "metatree_routers.recorded",
    "ScriptedRouter": "metatree.testing",
    "TextEvidence": "metatree_routers.evidence",
    "describe_tree": "metatree_routers.llm.descriptions",
    "embedded_suite": "metatree_routers.embedded",
    "rank_files": "metatree_routers.files",
    "text_evidence": "metatree_routers.evidence",
}

__all__ = [
    "CachedRouter",
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
