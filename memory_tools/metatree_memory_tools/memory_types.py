"""The memory types that are installed, in the order in which they are asked about a file."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from metatree import plugins
from metatree.trees.source_types import FileTraits, MemoryType, file_traits_of

_log = logging.getLogger("metatree")


@dataclass(frozen=True, slots=True)
class FileType:
    """A memory type, with how it reads files: asked once, not for each file."""

    kind: MemoryType
    traits: FileTraits

    def knows(self, path: str, head: bytes, *, binary: bool) -> bool:
        """Whether it reads a file, by its path, its first bytes, and whether it is no text; raises what it raises."""
        return (not binary or self.traits.binary) and bool(self.kind.recognises(path, head))


def memory_types() -> tuple[FileType, ...]:
    """Return the memory types, those that know most first; plain text, which takes everything, last.

    One that cannot be imported is left out, with a warning in the log.
    """
    installed = {}
    for name, kind in plugins.instances(plugins.MEMORY_TYPES):
        traits = file_traits_of(kind)
        texts = (kind.name, kind.version, kind.source_type)
        if (
            all(isinstance(text, str) for text in texts)
            and isinstance(traits.binary, bool)
            and isinstance(traits.max_file_bytes, int)
        ):
            installed[name] = FileType(kind, traits)
        else:
            _log.warning("the type %r is left out: its name, version or size is none", name)
    last = [installed.pop(name) for name in ("python", "markdown", "text") if name in installed]
    return (*installed.values(), *last)
