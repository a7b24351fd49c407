"""What makes gateways over odd servers for tests, and reads what these servers were asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from metatree_agents.gateway.gateway import Gateway
from metatree_agents.gateway.permission import ToolPolicy
from metatree_agents.gateway.servers_file import ServerEntry, entries

from metatree import Tree

ODD = Path(__file__).with_name("odd_server.py")


def odd(*words: str, **settings: Any) -> dict[str, Any]:
    """Return an odd server as a servers file has it."""
    return {"command": sys.executable, "args": [str(ODD), *words], **settings}


class Bench:
    """Makes gateways, and what they read."""

    def __init__(self, folder: Path, memory: Tree) -> None:
        self.folder = folder
        self.memory = memory
        self.log = folder / "log"

    def entries(self, **servers: dict[str, Any]) -> list[ServerEntry]:
        """Return servers, each of which writes its calls to the log."""
        for name, settings in servers.items():  # what is the same in all but its name is one server
            settings.setdefault("env", {}).update(LOG=str(self.log), SERVER=name)
        file = self.folder / "servers.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        return entries([file], [], folder=self.folder)

    def gateway(self, *, allow: list[str] | None = None, **options: Any) -> Gateway:
        """Return a gateway; servers come as keywords, with options of the gateway."""
        servers = {key: value for key, value in options.items() if isinstance(value, dict)}
        rest = {key: value for key, value in options.items() if key not in servers}
        policy = None
        if allow is not None:
            file = self.folder / "policy.json"
            file.write_text(json.dumps({"allow": allow}))
            policy = ToolPolicy(file)
        return Gateway(self.entries(**servers), self.memory, policy=policy, **rest)

    def calls(self, tool: str = "") -> list[str]:
        """Return the calls that servers got, of one tool or all."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if not line.startswith("started") and line.startswith(tool)]

    def starts(self) -> int:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(line.startswith("started") for line in lines)
