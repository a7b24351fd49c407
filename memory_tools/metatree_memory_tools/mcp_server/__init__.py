"""Servers of the Model Context Protocol as memory: their tools and resources as nodes, and as a tool tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metatree.trees.source_types import SourceRef
from metatree_memory_tools.mcp_server.address import config_source

__all__ = ["mcp_source"]


def mcp_source(config: Mapping[str, Any], *, mount: str = "", **options: Any) -> SourceRef:
    """Return the source that a table describes, as other hosts write it, for `build_tree`.

    Args:
        config: `command`, `args`, `env` and `cwd`, or `url` and `headers`.
        mount: what its nodes are called below; made of the command when empty.
        options: `read_only`, `seconds`, as `McpServer` has them.

    Raises:
        UserError: it describes no server.

    Example:
        >>> mcp_source({"command": "uvx", "args": ["weather-server"]}, mount="weather").location
        'uvx weather-server'
    """
    location, config_options = config_source(config)
    return SourceRef(location.removeprefix("mcp:"), {**config_options, **options}, mount, "mcp")
