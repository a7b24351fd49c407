"""`metatree gateway`: any number of servers behind three tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, NOTHING
from metatree_agents.cli._inputs import host_and_port, user_name
from metatree_agents.listening import require_free

if TYPE_CHECKING:
    from metatree_agents.gateway.gateway import Gateway

_LISTING_S = 120.0


def gateway(
    servers: Annotated[
        list[Path] | None,
        options.option(
            "--servers",
            "FILE",
            "A file with `mcpServers`, as hosts have it; several times for several. What it lists is started.",
            parser=options.path,
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        options.option(
            "--import",
            "HOST",
            "Take over the servers that this user has in claude-code, codex, cursor, vscode, opencode, gemini, zed or"
            " windsurf.",
        ),
    ] = None,
    http: Annotated[
        str | None,
        options.option(
            "--http",
            "HOST:PORT",
            "Serve over HTTP instead of standard input and output; PORT alone is for this machine.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        options.option("--name", "HOST", "With --http: a name by which others call this machine."),
    ] = None,
    policy: Annotated[
        Path | None,
        options.option(
            "--policy",
            "FILE",
            "Which tools may be called unasked, which never; by default gateway.json in the folder of settings.",
            parser=options.path,
        ),
    ] = None,
    memory: Annotated[
        Path | None,
        options.option(
            "--memory",
            "FILE",
            "Where calls, permissions and long results are kept; by default one file for all gateways of this user.",
            parser=options.path,
        ),
    ] = None,
    reuse: Annotated[
        float,
        typer.Option(
            "--reuse",
            min=0,
            metavar="S",
            help="Use answers of tools that change nothing again for S seconds, where a server's entry says nothing.",
        ),
    ] = 0.0,
    idle: Annotated[
        float,
        typer.Option("--idle", min=1, metavar="S", help="Stop a server after S seconds without a call."),
    ] = 300.0,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens",
            min=200,
            metavar="N",
            help="At most N tokens at once; longer results are kept.",
        ),
    ] = 4_000,
    router: options.Router = None,
    show: Annotated[bool, typer.Option("--list", help="List the servers and their tools, and end.")] = False,
    permit: Annotated[
        list[str] | None,
        options.option(
            "--permit",
            "TOOL",
            "Let a tool (SERVER/TOOL, or a pattern) be called from now on, as it is now, and end; repeatable.",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Serve the tools of many servers as three: find_tools, call_tool, browse_tools.

    A server is started when it is first needed. A tool that may change something is called when a person permits it, in
    the host that asks, with --permit, or in the policy. Over HTTP, a host that others can reach needs a token in
    METATREE_MCP_TOKEN. `metatree install --gateway` puts it in the place of the servers of a host.

    \b
    Example: metatree gateway --servers ~/.config/mcp.json --list
    """
    from metatree_agents.cli.commands._search import suite_parts
    from metatree_agents.gateway.gateway import Gateway, open_memory, state_folder
    from metatree_agents.gateway.permission import ToolPolicy, policy_file
    from metatree_agents.gateway.servers_file import entries

    if not servers and not host:
        raise UserError("name what to mount: --servers FILE, or --import HOST")
    if json and not show:
        raise UserError("--json goes with --list")
    if http is not None and not (show or permit):
        require_free(*host_and_port(http, port_alone=True), option="--http")
    listed = entries(servers or [], host or [], folder=Path.cwd(), reuse=reuse)
    if not listed:
        raise UserError("no server is listed there; add one, or name another file")
    rules = ToolPolicy(policy or policy_file())
    if policy is not None and not policy.is_file():
        raise UserError(f'no policy {str(policy)!r}: write one such as {{"allow": ["git/*"]}}')
    tree = open_memory(memory or state_folder() / "gateway.db")

    def made() -> Gateway:
        return Gateway(
            listed, tree, policy=rules, max_tokens=max_tokens, idle_s=idle, parts=suite_parts(router)
        )

    try:
        if show or permit:
            return asyncio.run(_listed(made, permit or [], json=json))
        if http is None:
            asyncio.run(_stdio(made))
        else:
            _over_http(made, http, name or [])
    except KeyboardInterrupt:
        pass  # that is how a server ends
    finally:
        tree.close()
    return FOUND


async def _stdio(made: Any) -> None:
    import sys

    from metatree_agents.gateway.mcp_tools import gateway_server

    if sys.stdin is not None and sys.stdin.isatty():
        output.note("a gateway waits for a host on standard input; --list shows what it has (Ctrl-C ends it)")
    async with made() as gateway:
        await gateway_server(gateway).run_stdio_async()


def _over_http(made: Any, http: str, names: list[str]) -> None:
    import os

    from metatree_agents.cli.commands.mcp import TOKEN
    from metatree_agents.gateway.mcp_tools import closed_at_end, gateway_server
    from metatree_agents.tools.mcp_http import http_app, serve_http

    host, port = host_and_port(http, port_alone=True)
    gateway = made()
    app = http_app(gateway_server(gateway), host=host, token=os.environ.get(TOKEN) or None, names=names)
    serve_http(
        closed_at_end(app, gateway), host, port, listening=lambda url: output.remark(f"listening on {url}")
    )


async def _listed(made: Any, permit: Sequence[str], *, json: bool) -> int:
    """Show what is mounted, or permit some of it."""
    async with made() as gateway:
        missing = await gateway.known(_LISTING_S)
        rows = gateway.overview()
        if permit:
            return _permit(gateway, permit)
        if json:
            output.write_json("gateway", {"servers": rows, "problems": missing})
        else:
            lines = []
            for row in rows:
                lines.append(output.styled(output.visible(f"{row['name']}  {row['place']}"), "bold"))
                for tool in row["tools"]:
                    state = "" if tool["read_only"] else "permitted, " if tool["permitted"] else "asks, "
                    lines.append(
                        f"  {output.visible(tool['id'])}  {state}{output.one_line(tool['description'], 90)}"
                    )
            output.write(lines)
        for line in missing:
            output.note(output.visible(line))
        if missing:
            return FAILED
        return FOUND if any(row["tools"] for row in rows) else NOTHING


def _permit(gateway: Gateway, patterns: Sequence[str]) -> int:
    permitted = [
        mounted
        for row in gateway.overview()
        for mounted in gateway.catalog.tools_of(row["name"])
        if any(fnmatchcase(mounted.id, pattern) for pattern in patterns)
    ]
    for mounted in permitted:
        gateway.gate.permit(mounted, who=user_name())
        output.write(
            [f"permitted  {output.visible(mounted.id)}  {output.one_line(mounted.tool.description, 90)}"]
        )
    if not permitted:
        output.note("no tool fits: --list shows their ids")
    return FOUND if permitted else NOTHING
