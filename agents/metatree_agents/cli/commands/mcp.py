"""`metatree mcp`: the tree as an MCP server, for any agent host."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND
from metatree_agents.cli._inputs import host_and_port
from metatree_agents.cli.commands._trees import TreeOptions
from metatree_agents.listening import require_free

TOKEN = "METATREE_MCP_TOKEN"


def mcp(
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
    router: options.Router = None,
    *,
    budget: options.Budget,
    web: options.Web = None,
    no_refresh: options.NoRefresh = False,
    where: TreeOptions,
) -> int:
    """Serve the tree over the Model Context Protocol: ten tools to find, read and remember.

    The tree is built when it is first needed, and refreshed when its source has changed. Over HTTP, a host that others
    can reach needs a token in METATREE_MCP_TOKEN. With --web, pages are kept as nodes, as `metatree ask` does it.
    `metatree install` adds it to Claude Code, Cursor, VS Code and others.

    \b
    Example: metatree mcp --source ~/src/requests
    """
    from metatree_agents.cli.commands._search import suite_parts, web_parts
    from metatree_agents.tools.mcp_server import mcp_server
    from metatree_agents.tools.toolkit import MAX_SECONDS, Toolkit

    where.place()  # a folder that is not there is said now, not at the first call
    if http is not None:
        from metatree_agents.tools.mcp_http import require_token

        host, port = host_and_port(http, port_alone=True)
        require_token(host, os.environ.get(TOKEN) or None)
        require_free(host, port, option="--http")
    given = {**suite_parts(router), **web_parts(web)}
    limits = replace(budget, max_seconds=budget.max_seconds or MAX_SECONDS).limits()
    kit = Toolkit(where.ready, parts=given, limits=limits, refresh=not no_refresh)
    try:
        server = mcp_server(kit)
        if http is None:
            _serve_stdio(server)
        else:
            _serve_http(server, http, name or [])
    except KeyboardInterrupt:
        pass  # that is how a server ends
    finally:
        kit.close()
    return FOUND


def _serve_stdio(server: Any) -> None:
    import asyncio
    import sys

    if sys.stdin is not None and sys.stdin.isatty():
        output.note(
            "an MCP server waits for a host on standard input; `metatree install` adds it to one (Ctrl-C ends it)"
        )
    asyncio.run(server.run_stdio_async())


def _serve_http(server: Any, http: str, names: list[str]) -> None:
    from metatree_agents.tools.mcp_http import http_app, serve_http

    host, port = host_and_port(http, port_alone=True)
    app = http_app(server, host=host, token=os.environ.get(TOKEN) or None, names=names)
    serve_http(app, host, port, listening=lambda url: output.remark(f"listening on {url}"))
