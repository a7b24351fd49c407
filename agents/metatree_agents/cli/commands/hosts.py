"""`metatree install` and `uninstall`: write metatree into the settings of coding agents, and take it out again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree.trees.sources import refuse_link_out
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, NOTHING

if TYPE_CHECKING:
    from metatree_agents.hosts.install import Change

_MANY_SERVERS = 3
"""From so many on a gateway is offered."""

Hosts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="HOST",
        help="claude-code, codex, cursor, vscode, opencode, gemini, zed or windsurf; by default those that are found.",
    ),
]
Project = Annotated[
    bool,
    typer.Option(
        "--project", help="In the current folder, for this project; by default for all of the user's."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes as a diff, and make none.")]


def install(
    hosts: Hosts = None,
    project: Project = False,
    source: Annotated[
        Path | None,
        options.option(
            "--source",
            "DIR",
            "Always serve the tree of this folder; by default that of the folder that is open in the host.",
            parser=options.path,
        ),
    ] = None,
    gateway: Annotated[
        bool,
        typer.Option(
            "--gateway",
            help="Also put the host's other servers behind one gateway; `uninstall` puts them back.",
        ),
    ] = False,
    dry_run: DryRun = False,
    json: options.Json = False,
) -> int:
    """Set up coding agents: the MCP server in their settings, and a skill that says when to use it.

    All else in the files stays as it is, comments too, and a copy of each is kept. A file that cannot be read is left
    alone. Windsurf has no word for the open folder, and gets the current one.

    \b
    Example: metatree install claude-code codex --dry-run
    """
    from importlib.util import find_spec

    from metatree_agents.hosts.install import detected, other_servers, planned
    from metatree_agents.hosts.table import HOSTS

    names = hosts or detected()
    if not names:
        raise UserError(f"no host was found: name one, of {', '.join(HOSTS)}")
    if source is not None and not source.is_dir():
        raise UserError(f"no folder {str(source)!r}: --source names the folder to serve")
    if source is not None:
        refuse_link_out(source)
    changes = planned(names, "project" if project else "user", Path.cwd(), source=source, gateway=gateway)
    done = _carried_out(changes, dry_run=dry_run, json=json)
    if find_spec("mcp") is None:
        output.note("warning: the server needs `pip install 'metatree-memory[mcp]'`")
    for name in names if not gateway and not project else ():
        count = other_servers(HOSTS[name], Path.cwd())
        if count >= _MANY_SERVERS:
            command = f"metatree install {name} --gateway"
            output.remark(f"{name} has {count} other servers: `{command}` makes three tools of them")
    if not dry_run and any(change.changes for change in done):
        output.remark("restart the host, or open a new session in it; it may ask whether to trust the server")
    return FAILED if any(change.done == "refused" for change in done) else FOUND


def uninstall(
    hosts: Hosts = None,
    project: Project = False,
    dry_run: DryRun = False,
    json: options.Json = False,
) -> int:
    """Take out what `metatree install` wrote.

    A file that was not changed since becomes what it was, byte for byte; from another, the entry alone is taken out,
    and servers that a gateway stood for are put back.

    \b
    Example: metatree uninstall cursor
    """
    from metatree_agents.hosts.install import takes_back
    from metatree_agents.hosts.table import HOSTS

    changes = takes_back(hosts or list(HOSTS), "project" if project else "user", Path.cwd())
    done = _carried_out(changes, dry_run=dry_run, json=json)
    if hosts and any(change.done == "refused" for change in done):
        return FAILED
    return FOUND if any(change.done not in ("absent", "refused") for change in done) else NOTHING


def _carried_out(changes: Iterable[Change], *, dry_run: bool, json: bool) -> list[Change]:
    """Make the changes one by one, or show them, and say of each what was done."""
    from metatree_agents.hosts.install import apply, diff

    done, rows = [], []
    for change in changes:
        kept = None if dry_run else apply(change)
        done.append(change)
        lines = diff(change) if dry_run and change.changes else []
        if not json:
            output.write([_line(change, kept, dry_run=dry_run), *map(output.visible, lines)])
            continue
        row = {
            "host": change.host,
            "level": change.level,
            "what": change.what,
            "path": str(change.path),
            "done": change.done,
            "detail": change.detail,
            "copy_kept": None if kept is None else str(kept),
        }
        rows.append({**row, "diff": lines} if dry_run else row)
    if json:
        output.write_json("install", {"changes": rows})
    return done


def _line(change: Change, kept: Path | None, *, dry_run: bool) -> str:
    done = f"would be {change.done}" if dry_run and change.changes else change.done
    more = f" ({change.detail})" if change.detail else f" (copy: {kept})" if kept is not None else ""
    return output.visible(f"{change.host:12} {change.what:7} {done}: {change.path}{more}")
