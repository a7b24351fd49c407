"""Record what a host shows of the gateway: the session that docs/gateway.md begins with.

usage: python -m benchmarks.gateway.session PYTHON_BIN NPM_BIN

`metatree install claude-code --gateway` is run in a new home folder with five servers in its settings; then the entry
that it wrote is started and called by the official client, and all of it is put back by `metatree uninstall`. The two
folders hold `mcp-server-git` and `mcp-server-time` of PyPI, and `mcp-server-filesystem`, `mcp-server-memory` and
`mcp-server-sequential-thinking` of npm (`make test-real` gets them). The new folder is shown as /home/ann.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHOWN_HOME = "/home/ann"
METATREE = str(Path(sys.executable).with_name("metatree"))


def main() -> None:
    """Record and print."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    python, npm = (Path(each).resolve() for each in sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        settings = _set_up(home, python, npm)
        before = settings.read_text()

        def show(text: str) -> None:
            print(text.replace(str(home), SHOWN_HOME), flush=True)

        _run(home, show, "install", "claude-code", "--gateway")
        entry = json.loads(settings.read_text())["mcpServers"]["metatree-gateway"]
        asyncio.run(_session(home, entry, show))
        _run(home, show, "uninstall", "claude-code")
        same = json.loads(before) == json.loads(settings.read_text())
        print(f"the settings are {'those of before' if same else 'others than before'}")


def _set_up(home: Path, python: Path, npm: Path) -> Path:
    shop = home / "src/shop"
    for folder in (shop, home / "notes", home / ".claude"):
        folder.mkdir(parents=True)
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    _git(shop, "init", "-q")
    (shop / "cart.py").write_text("MAX_ITEMS = 50\n")
    _git(shop, "add", ".")
    _git(shop, *who, "commit", "-q", "-m", "Limit the cart")
    (shop / "cart.py").write_text("MAX_ITEMS = 60\n")
    (shop / "prices.py").write_text("def price(): return 1\n")
    _git(shop, "add", ".")
    _git(shop, *who, "commit", "-q", "-m", "Raise the limit of the cart")
    servers = {
        "git": {"command": str(python / "mcp-server-git")},
        "files": {"command": str(npm / "mcp-server-filesystem"), "args": [str(home)]},
        "memory": {
            "command": str(npm / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(home / "memory.jsonl")},
        },
        "time": {"command": str(python / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "thinking": {"command": str(npm / "mcp-server-sequential-thinking")},
    }
    settings = home / ".claude.json"
    settings.write_text(json.dumps({"mcpServers": servers}, indent=2))
    return settings


def _git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", *words], cwd=folder, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    )


def _environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    return {**kept, "HOME": str(home)}


def _run(home: Path, show: Callable[[str], None], *words: str) -> None:
    show(f"$ metatree {' '.join(words)}")
    done = subprocess.run(
        [METATREE, *words], cwd=home, env=_environment(home), capture_output=True, text=True
    )
    show(done.stdout + done.stderr)
    done.check_returncode()


async def _session(home: Path, entry: dict[str, Any], show: Callable[[str], None]) -> None:
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.types import ElicitRequestParams, ElicitResult

    async def asked(context: Any, params: ElicitRequestParams) -> ElicitResult:
        show("  ┌ " + params.message.replace("\n", "\n  │ ") + "\n  └ once")
        return ElicitResult(action="accept", content={"answer": "once"})

    started = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={**_environment(home), **entry.get("env", {})}
    )
    async with Client(stdio_client(started), elicitation_callback=asked) as client:

        async def call(tool: str, **arguments: Any) -> None:
            words = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
            show(f"{tool}({words})")
            result = await client.call_tool(tool, arguments)
            lines = "\n".join(getattr(part, "text", "") for part in result.content).splitlines()
            show("\n".join(f"  {line}".rstrip() for line in lines) + "\n")

        while "still starting" in str(await client.call_tool("browse_tools", {})):
            await asyncio.sleep(1)
        note = {"path": str(home / "notes/shop.md"), "content": "Changed: cart.py, prices.py\n"}
        await call("find_tools", request="show the contents of the last commit\nwrite a file", k=2)
        await call(
            "call_tool",
            id="git/git_show",
            arguments={"repo_path": str(home / "src/shop"), "revision": "HEAD"},
        )
        for _ in range(2):
            await call("call_tool", id="files/write_file", arguments=note, key="note on the last commit")
        await call("call_tool", id="git/git_show", arguments={"repo": str(home / "src/shop")})


if __name__ == "__main__":
    main()
