"""Who permits a tool that changes something on the command line: --allow, the memory, the person at the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._inputs import user_name
from metatree_agents.cli.printing.progress import paused

if TYPE_CHECKING:
    from metatree import Tool, Tree

_LISTED = 20


def permit_of(
    tree: Tree, allowed: Sequence[str] | None, tools: Sequence[Any] = (), *, terminal: bool = True
) -> Any:
    """Return the `permit` of a search for a command.

    What `--allow` names may be called; else what the memory permits; else the person at the terminal is asked, or,
    where there is none, the run waits: its question is on the board of the tree, or in the thread of the service.

    Args:
        tree: the tree that is searched.
        allowed: what `--allow` names: ids of tools, their last parts or their titles.
        tools: those that the search is given besides the tree's own.
        terminal: whether the person at the terminal may be asked; not the one who runs a server for others.

    Raises:
        UserError: a name fits no tool, or several.
    """
    from metatree import ask_person
    from metatree._util.threads import in_thread
    from metatree.notes.permissions import Permissions

    permissions = Permissions(tree.memory)
    ids = _tools_by_name(tree, allowed, tools) if allowed else frozenset()

    async def permit(tool: Tool, arguments: Mapping[str, Any]) -> Any:
        if tool.id in ids:
            return True
        if permissions.allows(tool) or not (terminal and _is_terminal()):
            return ask_person
        # In a thread of its own, so that the run keeps its hold while the person thinks.
        return await in_thread(_ask_person, tool=tool, arguments=arguments, permissions=permissions)

    return permit


def has_changing(tree: Tree) -> bool:
    """Say whether a search of a tree may meet tools that change something, so that it needs a board to ask on."""
    return any(tool.changes for tool in _tools(tree))


def _tools(tree: Tree, given: Sequence[Any] = ()) -> list[Tool]:
    from metatree.searches.source_tools import with_own
    from metatree.tools.tool import ToolTree

    return list(ToolTree(with_own(tree, given, True, filled=True)).tools())


def _tools_by_name(tree: Tree, names: Sequence[str], given: Sequence[Any]) -> frozenset[str]:
    """Return the ids of the tools that are named."""
    tools = _tools(tree, given)
    ids = {tool.id for tool in tools}
    changing = [tool for tool in tools if tool.changes]
    selection = set()
    for name in names:
        fitting = [name] if name in ids else [tool.id for tool in changing if _fits(tool, name)]
        if len(fitting) != 1:
            raise UserError(_unclear(name, fitting, sorted(tool.id for tool in changing)))
        selection.add(fitting[0])
    return frozenset(selection)


def _fits(tool: Tool, name: str) -> bool:
    return tool.id.endswith((f":{name}", f"/{name}")) or tool.title.casefold() == name.strip().casefold()


def _unclear(name: str, fitting: Sequence[str], changing: Sequence[str]) -> str:
    listed = ", ".join((fitting or changing)[:_LISTED]) + (
        ", …" if len(fitting or changing) > _LISTED else ""
    )
    if fitting:
        return f"--allow {name!r} fits {len(fitting)} tools: name one, of {listed}"
    if not changing:
        return f"--allow {name!r} fits no tool: none here asks for permission, so leave it out"
    return f"--allow {name!r} fits no tool: those that ask for permission are {listed}"


def _is_terminal() -> bool:
    # Not sys.stderr.isatty: while a line of progress is shown, sys.stderr is an object that puts text above it.
    try:
        return sys.stdin is not None and sys.stdin.isatty() and os.isatty(2)
    except (OSError, ValueError):
        return False


def _ask_person(tool: Tool, arguments: Mapping[str, Any], permissions: Any) -> bool:
    given = output.visible(json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True))
    with paused():
        output.note(f"\n{output.visible(tool.id)} may change something outside of the memory: {_about(tool)}")
        output.note(f"it is to be called with {given}")
        while True:
            print("allow it? [y]es this call, [a]lways, [N]o: ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            reply = line.strip().casefold()
            if reply in ("", "n", "no"):  # the end of input is a no
                return False
            if reply in ("y", "yes"):
                return True
            if reply in ("a", "always"):
                permissions.grant(tool, who=user_name())
                return True


def _about(tool: Tool) -> str:
    return output.visible(" ".join(tool.description.split()))[:300]
