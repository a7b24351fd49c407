"""`metatree plugins`: the installed plug-ins, and which tools may change something without asking again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, NOTHING
from metatree_agents.cli.commands._trees import TreeOptions

if TYPE_CHECKING:
    from metatree.catalogue import Plugin

_WORDS = {
    "metatree.memory_types": "Types of files",
    "metatree.sources": "Types of sources",
    "metatree.tools": "Tools",
    "metatree.routers": "Routers",
    "metatree.evidence": "Evidence",
    "metatree.builders": "Builders",
}


def plugins(
    permissions: Annotated[
        bool,
        typer.Option(
            "--permissions", help="List the tools that may change something without asking, instead."
        ),
    ] = False,
    revoke: Annotated[
        str | None, options.option("--revoke", "TOOL", "Take the permission of this tool back.")
    ] = None,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """List the installed plug-ins with their packages and what they provide; one that cannot be imported says why.

    A broken plug-in harms nothing else: builds and searches leave it out. The exit code is 5 when there is one.

    \b
    Example: metatree plugins --json
    """
    if permissions or revoke is not None:
        return _permissions(where, revoke, json=json)
    from metatree.catalogue import GROUPS, catalogue

    catalog = catalogue()
    if json:
        output.write_json("plugins", {"plugins": catalog})
    else:
        output.write(
            line for group in GROUPS for line in _lines(group, [p for p in catalog if p.group == group])
        )
    return FAILED if any(plugin.error for plugin in catalog) else FOUND


def _permissions(where: TreeOptions, revoke: str | None, *, json: bool) -> int:
    from metatree.notes.permissions import Permissions

    with where.existing() as opened:
        permissions = Permissions(opened.memory)
        revoked = permissions.revoke(revoke) if revoke is not None else []
        listed = permissions.all()
    if revoke is not None and not revoked:
        known = ", ".join(sorted({each.tool for each in listed})) or "none"
        raise UserError(f"no tool {revoke!r} has a permission here (those that have one: {known})")
    rows = revoked if revoke is not None else listed
    if json:
        output.write_json("plugins --permissions", {"permissions": rows})
    elif rows:
        word = (
            "may no longer be called without asking" if revoke is not None else "may be called without asking"
        )
        output.write(
            f"{output.visible(each.tool)}  {word}; {output.visible(each.who)} said so on {output.visible(each.at[:10])}"
            f" (version {output.visible(each.version)}, {output.visible(each.fingerprint[:12])})"
            for each in rows
        )
    else:
        output.note("no tool may change something without asking")
    return FOUND if rows else NOTHING


def _lines(group: str, members: list[Plugin]) -> Iterator[str]:
    yield output.styled(f"{_WORDS[group]} ({group})", "bold")
    if not members:
        yield "  none"
    width = min(20, max((len(plugin.name) for plugin in members), default=0))
    for plugin in members:
        package = f"{plugin.package} {plugin.version}".strip()
        text = output.visible(plugin.provides)
        if plugin.error:
            text = output.styled(f"BROKEN: {output.visible(' '.join(plugin.error.split()))}", "red")
        yield f"  {output.styled(f'{output.visible(plugin.name):{width}}', 'cyan')}  {output.visible(package)}  {text}"
