"""A tree behind the Model Context Protocol: the tools of `_registry` for any agent host.

Needs `metatree-memory[mcp]`; importing this module without it raises `MissingExtra`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from metatree._util.secret_text import shapes_masked
from metatree._util.threads import in_thread
from metatree._util.visible import visible
from metatree.errors import MetatreeError, MissingExtra
from metatree.version import RELEASE
from metatree_agents.tools._registry import TOOLS, AgentTool
from metatree_agents.tools.instructions import DESCRIPTION, instructions
from metatree_agents.tools.toolkit import CallContext, Toolkit

try:
    from mcp.server.mcpserver import Context as Call
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.server.mcpserver.resources import ResourceSecurity
    from mcp_types import CallToolResult, TextContent, ToolAnnotations
except ImportError as exc:
    raise MissingExtra("mcp", what="an MCP server") from exc


def mcp_server(kit: Toolkit) -> MCPServer:
    """Return an MCP server with the tools of a tree; run it with `run_stdio_async` or as an ASGI app."""
    server = _Server(
        "metatree",
        title="metatree",
        description=DESCRIPTION,
        instructions=instructions(),
        version=RELEASE,
        log_level="WARNING",
    )
    for tool in TOOLS:
        server.add_tool(
            _function(tool, kit),
            title=tool.title,
            description=tool.description,
            annotations=ToolAnnotations(
                read_only_hint=tool.read_only, destructive_hint=None if tool.read_only else tool.destructive
            ),
            structured_output=False,
        )

    async def node_text(node: str) -> str:
        """The text of a node of the memory."""
        try:
            return await in_thread(kit.whole_text, named=node)
        except MetatreeError as exc:
            raise ResourceNotFoundError(_message(exc)) from exc

    server.resource(
        "metatree://nodes/{+node}",
        name="node",
        title="A node of the memory",
        description="The text of a node; the ids are those that `search` and `browse` return.",
        mime_type="text/plain",
        # Ids are looked up in the tree and never opened as paths; `.` is the root.
        security=ResourceSecurity(exempt_params=frozenset({"node"})),
    )(node_text)
    return server


def _message(error: MetatreeError) -> str:
    return visible(shapes_masked(str(error)))


class _Server(MCPServer):
    """A server whose listing has no more words than a model needs: every host sends it with every question."""

    async def list_tools(self) -> list[Any]:
        tools = await super().list_tools()
        for tool in tools:
            tool.title = None
            tool.input_schema.pop("title", None)
            for about in tool.input_schema.get("properties", {}).values():
                about.pop("title", None)
        return tools


def _function(tool: AgentTool, kit: Toolkit) -> Callable[..., Awaitable[CallToolResult]]:
    """Return a tool as the server takes one: a function whose signature has the arguments and the call."""

    async def called(ctx: Any, **arguments: Any) -> CallToolResult:
        async def tell(steps: int, what: str) -> None:
            await ctx.report_progress(steps, None, what)

        if tool.takes_caller:
            arguments["caller"] = CallContext(_client(ctx), tell)
        try:
            answer = await tool.method(kit, **arguments)
            basis = (await in_thread(kit.basis)).line
        except MetatreeError as exc:
            raise ToolError(_message(exc)) from exc
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text_for_model(basis))],
            structured_content=answer.as_json(),
        )

    about = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Call)
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in tool.parameters()]
    called.__name__ = tool.name
    called.__signature__ = inspect.Signature([*parameters, about], return_annotation=CallToolResult)  # type: ignore[attr-defined]
    called.__annotations__ = {"ctx": Call}  # in which the server looks for the one that gets the call
    return called


def _client(ctx: Any) -> str | None:
    """Return the name of the program at the other end, which is who speaks when the call does not say."""
    try:
        info = ctx.session.client_params.client_info
        return f"{info.name} (MCP)"
    except (AttributeError, LookupError):
        return None
