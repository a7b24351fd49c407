"""The servers of a host that a gateway stands for: taken out of its file into one of this user's, and put back.

What only the host can do stays with it: a server that asks for a value (`${input:…}`), one that is switched off, and an
address without a header, for which the host may log in itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from metatree_agents.hosts.servers import GATEWAY, fronted_folder, is_gateway
from metatree_agents.hosts.table import Host

TREE: Final = "metatree"
"""The entry of the tree's own server, which stays."""
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


def fronted_file(host: Host) -> Path:
    """Return the file of the servers that a gateway has in the place of a host."""
    return fronted_folder() / f"{host.name}.json"


def kept_servers(text: str | None) -> dict[str, Any]:
    """Return what such a file has, as the host had it.

    Raises:
        ValueError: it is damaged.
    """
    data = {} if text is None else json.loads(text)
    servers = data.get("mcpServers", {}) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise ValueError("the file of the gateway's servers is damaged")
    return servers


def written(servers: Mapping[str, Any]) -> str:
    return json.dumps({"mcpServers": dict(servers)}, indent=2, ensure_ascii=False) + "\n"


def to_front(servers: Mapping[str, Any]) -> dict[str, Any]:
    """Return those servers of a host that a gateway can stand for.

    Example:
        >>> list(to_front({"git": {"command": "uvx"}, "figma": {"url": "https://mcp.figma.example"}, "metatree": {}}))
        ['git']
    """
    return {
        name: entry for name, entry in servers.items() if isinstance(entry, Mapping) and _fits(name, entry)
    }


def _fits(name: str, entry: Mapping[str, Any]) -> bool:
    if name in (TREE, GATEWAY) or is_gateway(name, entry):
        return False
    if (
        entry.get("disabled") is True
        or entry.get("enabled") is False
        or "${input:" in json.dumps(entry, default=str)
    ):
        return False
    if entry.get("command"):
        return True
    url = next((entry[key] for key in ("url", "httpUrl", "serverUrl") if isinstance(entry.get(key), str)), "")
    has_header = any(entry.get(key) for key in ("headers", "http_headers", "bearer_token_env_var"))
    return bool(url) and (has_header or urlsplit(url).hostname in _LOCAL)
