"""Parts that other packages bring, found by entry point and loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metatree.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ROUTERS = "metatree.routers"
EVIDENCE = "metatree.evidence"
MEMORY_TYPES = "metatree.memory_types"
TOOLS = "metatree.tools"


def available(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    from importlib.metadata import entry_points  # loads email and zipfile, 15 ms that no import should cost

    return {entry.name: entry for entry in entry_points(group=group)}


def load(group: str, name: str) -> Any:
    """Import and return one plug-in.

    Raises:
        UserError: there is none of this name, or it cannot be imported.
    """
    found = available(group)
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise UserError(
            f"no plug-in {name!r} in {group!r} (installed: {known}); reinstall metatree or name another"
        )
    try:
        return found[name].load()
    except Exception as exc:
        raise UserError(
            f"the plug-in {name!r} of {group!r} cannot be imported: {type(exc).__name__}: {exc}"
        ) from exc
