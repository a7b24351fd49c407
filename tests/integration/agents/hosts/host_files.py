"""Files of hosts in the shape that the hosts' pages show, and what stands in them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from metatree_agents.hosts import _json_edits
from metatree_agents.hosts.table import HOSTS

CLAUDE = """{
  "numStartups": 42,
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp"
    }
  },
  "projects": {
    "/home/ann/shop": {"allowedTools": [], "history": [{"display": "fix \\"it\\" { // no comment"}]}
  }
}
"""


CODEX = """# What I like
model = "gpt-5.2-codex"   # the good one
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[mcp_servers.docs.env]
TOKEN = "x"

[profiles.max]
model_reasoning_effort = "high"
"""


CURSOR = '{"mcpServers": {"figma": {"url": "http://127.0.0.1:3845/mcp"}}}'


VSCODE = """{
\t"inputs": [
\t\t{"type": "promptString", "id": "key", "password": true},
\t],
\t"servers": {
\t\t// asks for a key
\t\t"perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "pp"], "env": {"KEY": "${input:key}"}},
\t},
}
"""


OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  // my theme
  "theme": "opencode", /* dark */
  "mcp": {"jira": {"type": "remote", "url": "https://jira.example.com/mcp", "enabled": false}}
}
"""


GEMINI = '{\r\n  "theme": "Dracula",\r\n  "general": {"vimMode": true}\r\n}\r\n'


ZED = """// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "ui_font_size": 16,
  "context_servers": {
    "postgres": {
      "settings": {
        "database_url": "postgresql://me@localhost/db" // local
      }
    }
  },
  "theme": {
    "mode": "system",
  },
}
"""


WINDSURF = "{}\n"


FILES = {
    "claude-code": (".claude.json", CLAUDE),
    "codex": (".codex/config.toml", CODEX),
    "cursor": (".cursor/mcp.json", CURSOR),
    "vscode": (".config/Code/User/mcp.json", VSCODE),
    "opencode": (".config/opencode/opencode.jsonc", OPENCODE),
    "gemini": (".gemini/settings.json", GEMINI),
    "zed": (".config/zed/settings.json", ZED),
    "windsurf": (".codeium/windsurf/mcp_config.json", WINDSURF),
}


def everything(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, without metatree's own state and key."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".local/state" not in str(path) and path.name != "trust.key"
    }


def says(host: str, text: str) -> Any:
    return tomllib.loads(text) if host == "codex" else _json_edits.parsed(text)


def server_in(host: str, said: Any) -> Any:
    for key in HOSTS[host].keys:
        said = said[key]
    return said["metatree"]
