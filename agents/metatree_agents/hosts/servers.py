"""The MCP servers that a file of a host lists, whichever host wrote it: all in one form.

Nothing is started here. Whoever starts what a file lists must have been given that file by this user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from metatree._util.cache_folder import xdg_folder
from metatree._util.named_file import read_named
from metatree.errors import UserError
from metatree_agents.hosts import _json_edits, _toml_edits
from metatree_agents.hosts.table import HOSTS, Host

LISTS: Final = ("mcpServers", "servers", "mcp_servers", "context_servers", "mcp")
"""What hosts call the object that their servers are in."""
GATEWAY: Final = "metatree-gateway"
"""What a gateway is called in the settings of hosts."""
_MOST_BYTES: Final = 32_000_000
_SAME: Final = {
    "environment": "env",
    "http_headers": "headers",
    "serverUrl": "url",
    "httpUrl": "url",
    "uri": "url",
    "workingDirectory": "cwd",
}
"""Names that single hosts have for what all others call otherwise."""
_OFF: Final = {"disabled": True, "enabled": False}
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}|\{env:(\w+)\}")
_FOLDERS: Final = re.compile(r"\$\{(workspaceFolder|workspaceRoot|userHome)\}")


def fronted_folder() -> Path:
    """Return the folder of the files with the servers that a gateway has in the place of a host."""
    return xdg_folder("XDG_STATE_HOME", ".local/state") / "metatree" / "gateway"


def read_file(path: Path) -> dict[str, dict[str, Any]]:
    """Return the servers of a file by name, as `normal` has them; those that are switched off are left out.

    Raises:
        UserError: it cannot be read, or lists no servers.
    """
    data = _data(path)
    named = next((data[name] for name in LISTS if isinstance(data.get(name), Mapping)), None)
    if named is None and data and all(isinstance(each, Mapping) for each in data.values()):
        named = data  # the list alone
    if named is None:
        raise UserError(f"{str(path)!r} lists no servers: it needs an object `mcpServers`")
    return _all(named)


def of_host(name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the servers that a host has for this user, and for a folder where the user's own file says so.

    What lies in the folder itself came with it, maybe, and is not read.

    Raises:
        UserError: there is no such host, or its file cannot be read.
    """
    if name not in HOSTS:
        raise UserError(f"no host {name!r} is known: choose from {', '.join(HOSTS)}")
    host = HOSTS[name]
    path = host.file("user", folder)
    if not path.is_file():
        raise UserError(
            f"{host.title} has no file {str(path)!r}: `metatree doctor` lists the hosts that are found"
        )
    data = _data(path)
    found = _all(_at(data, host.keys))
    projects = data.get("projects")
    own = projects.get(str(folder)) if name == "claude-code" and isinstance(projects, Mapping) else None
    if isinstance(own, Mapping):
        servers = _all(_at(own, host.keys)).items()
        found |= {name: {"cwd": str(folder), **entry} for name, entry in servers}
    return found


def raw(host: Host, path: Path) -> dict[str, Any]:
    """Return the servers of a host's file as they stand there, those that are switched off too.

    Raises:
        UserError: it cannot be read.
    """
    servers = _at(_data(path), host.keys)
    return {str(name): entry for name, entry in servers.items() if isinstance(entry, Mapping)}


def normal(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with the names that most hosts use: `command`, `args`, `env`, `cwd`, or `url` and `headers`.

    Values of the environment are filled in, so what is returned may hold secrets.

    Raises:
        UserError: a variable is not set, or the command is no text.

    Example:
        >>> normal("git", {"type": "local", "command": ["uvx", "mcp-server-git"], "environment": {"A": "b"}})
        {'command': 'uvx', 'env': {'A': 'b'}, 'args': ['mcp-server-git']}
    """
    result: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in ("type", "transport", *_OFF):
            result[_SAME.get(key, key)] = _filled(name, value)
    command = result.get("command")
    if isinstance(command, Mapping):  # as Zed has it: path, args, env
        result |= {
            **{key: value for key, value in command.items() if key != "path"},
            "command": command.get("path"),
        }
        command = result["command"]
    if isinstance(command, list) and command:
        result["command"], result["args"] = command[0], [*command[1:], *result.get("args", [])]
    token = result.pop("bearer_token_env_var", None)
    if isinstance(token, str):
        result["headers"] = {**result.get("headers", {}), "Authorization": f"Bearer {_variable(name, token)}"}
    return result


def is_gateway(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether an entry starts a gateway, which must not mount itself."""
    command = settings.get("command")
    words = [*(command if isinstance(command, list) else [command]), *(settings.get("args") or [])]
    return name == GATEWAY or (
        len(words) > 1 and Path(str(words[0])).stem == "metatree" and words[1] == "gateway"
    )


def _all(servers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        str(name): normal(str(name), entry)
        for name, entry in servers.items()
        if isinstance(entry, Mapping) and not any(entry.get(key) is off for key, off in _OFF.items())
    }


def _at(data: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any]:
    value: Any = data
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _data(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{str(path)!r} is too large for a list of servers")
        text = read_named(path).decode()
        data = (_toml_edits if path.suffix == ".toml" else _json_edits).parsed(text)
    except OSError as exc:
        raise UserError(f"cannot read {str(path)!r}: {exc.strerror or exc}") from exc
    except ValueError as exc:
        raise UserError(f"{str(path)!r} cannot be read: {exc}; correct it first") from exc
    if not isinstance(data, Mapping):
        raise UserError(f"{str(path)!r} lists no servers: it needs an object `mcpServers`")
    return data


def _filled(name: str, value: Any) -> Any:
    if isinstance(value, str):
        text = _FOLDERS.sub(lambda each: str(Path.home() if each[1] == "userHome" else Path.cwd()), value)
        return _VARIABLE.sub(lambda each: _variable(name, each[1] or each[3], each[2]), text)
    if isinstance(value, Mapping):
        return {str(key): _filled(name, each) for key, each in value.items()}
    return [_filled(name, each) for each in value] if isinstance(value, list) else value


def _variable(server: str, name: str, otherwise: str | None = None) -> str:
    value = os.environ.get(name, otherwise)
    if value is None:
        raise UserError(f"the server {server!r} needs the variable {name!r}, which is not set")
    return value
