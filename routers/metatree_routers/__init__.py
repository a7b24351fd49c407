"""Parts that think for metatree: the text index and its evidence, and the embedded router that needs no model.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.testing import ScriptedRouter
    from metatree_routers.composer import EmbeddedComposer
    from metatree_routers.describer import EmbeddedDescriber
    from metatree_routers.embedded import embedded_suite
    from metatree_routers.evidence import TextEvidence, text_evidence
    from metatree_routers.files import FileEvidence, FoundDefinition, FoundFile, rank_files
    from metatree_routers.reader import EmbeddedReader
    from metatree_routers.router import EmbeddedRouter
    from metatree_routers.tool_caller import EmbeddedToolCaller

_MODULES = {
    "EmbeddedComposer": "metatree_routers.composer",
    "EmbeddedDescriber": "metatree_routers.describer",
    "EmbeddedReader": "metatree_routers.reader",
    "EmbeddedRouter": "metatree_routers.router",
    "EmbeddedToolCaller": "metatree_routers.tool_caller",
    "FileEvidence": "metatree_routers.files",
    "FoundDefinition": "metatree_routers.files",
    "FoundFile": "metatree_routers.files",
    "ScriptedRouter": "metatree.testing",
    "TextEvidence": "metatree_routers.evidence",
    "embedded_suite": "metatree_routers.embedded",
    "rank_files": "metatree_routers.files",
    "text_evidence": "metatree_routers.evidence",
}

__all__ = [
    "EmbeddedComposer",
    "EmbeddedDescriber",
    "EmbeddedReader",
    "EmbeddedRouter",
    "EmbeddedToolCaller",
    "FileEvidence",
    "FoundDefinition",
    "FoundFile",
    "ScriptedRouter",
    "TextEvidence",
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
