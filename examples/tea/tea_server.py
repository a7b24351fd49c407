"""A small MCP server: `python tea_server.py` speaks the protocol on standard input and output."""

from __future__ import annotations

from typing import Literal

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

DEGREES = {"green": 75, "black": 95, "white": 80}

server = MCPServer("tea", instructions="Knows how tea is brewed.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(tea: Literal["green", "black", "white"]) -> str:
    """Tell what is known of a tea."""
    return f"The water for {tea} tea has {DEGREES[tea]} degrees."


if __name__ == "__main__":
    server.run()
