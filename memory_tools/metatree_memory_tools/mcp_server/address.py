"""How a server is named: a command line, an address, or a table of its settings."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metatree._util.process import TOP_FOLDER
from metatree.errors import UserError

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A command to start, or an address to connect to."""

    command: tuple[str, ...] = ()
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What a command is given besides the few variables that every one gets; `$NAME` stands for one of ours."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent to an address; `$NAME` stands for a variable of the environment."""
    folder: str | None = None
    """Where a command is started."""
    named_in: str | None = None
    """Where it is started while that is there and no `folder` is given: the folder in which it was named. A source has
    none that an older version has kept, or that came with a tree which was accepted."""
    as_given: bool = False
    """Whether the values are as they are, `$` included, since whoever read them has filled them in; they are secret
    then, and must be kept nowhere."""

    @classmethod
    def of(cls, location: str, options: Mapping[str, Any]) -> ServerAddress:
        """Read a location and the options `env`, `headers`, `cwd` and `named_in`.

        Raises:
            UserError: it names no server, or an option is of another type. A header or variable that looks like a
                secret must be given as `$NAME`, since options are kept beside the tree.

        Example:
            >>> ServerAddress.of("mcp:python server.py --port '1 2'", {}).command
            ('python', 'server.py', '--port', '1 2')
        """
        text = location.strip()
        text = text[4:].strip() if text.lower().startswith("mcp:") else text
        given = {name: _texts(options.get(name), name) for name in ("env", "headers")}
        folder, named_in = options.get("cwd"), options.get("named_in")
        for name, place in (("cwd", folder), ("named_in", named_in)):
            if place is not None and not isinstance(place, str):
                raise UserError(f"{name}={place!r}: give the path of a folder")
        if re.match(r"https?://", text, re.IGNORECASE):
            return cls((), text, given["env"], given["headers"], folder)
        try:
            command = tuple(shlex.split(text))
        except ValueError as exc:
            raise UserError(f"the command of {location!r} cannot be read: {exc}") from exc
        if not command:
            raise UserError("mcp: names no server: write `mcp:COMMAND …` or `mcp:https://…`")
        return cls(command, "", given["env"], given["headers"], folder, named_in)

    @property
    def start_folder(self) -> str:
        """Where a command is started: the home where nothing says that, or what says it is gone; never just here."""
        home = os.path.expanduser("~")  # noqa: PTH111  # where there is no home, that says so
        if not Path(home).is_absolute():  # it would lie in whatever folder is current
            home = TOP_FOLDER or home
        if self.folder is not None:
            return os.path.join(home, self.folder)  # noqa: PTH118  # which may be a whole path
        named_in = self.named_in or ""  # which has no links: one in its place came later
        return named_in if Path(named_in).is_dir() and os.path.realpath(named_in) == named_in else home

    def filled(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return values with `$NAME` replaced by variables of the environment.

        Raises:
            UserError: a variable is not set.
        """
        if self.as_given:
            return dict(values)
        return {name: _VARIABLE.sub(_variable, value) for name, value in values.items()}


def config_source(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return location and options of a table as other hosts write it: `command`, `args`, `env`, or `url`, `headers`.

    Raises:
        UserError: it has neither a command nor an address, or something else besides.

    Example:
        >>> config_source({"command": "uvx", "args": ["some server"]})
        ("mcp:uvx 'some server'", {})
    """
    known = {"command", "args", "env", "cwd", "url", "headers", "type"}
    other = sorted(config.keys() - known)
    if other:
        raise UserError(
            f"the table of an MCP server has {', '.join(map(repr, other))}: it may have {sorted(known)}"
        )
    options = {name: config[name] for name in ("env", "cwd", "headers") if config.get(name)}
    if config.get("url"):
        return f"mcp:{config['url']}", options
    args = config.get("args") or []
    if not isinstance(config.get("command"), str) or not isinstance(args, list | tuple):
        raise UserError(f"{dict(config)!r} names no MCP server: give `command` and `args`, or `url`")
    return "mcp:" + shlex.join([config["command"], *map(str, args)]), options


def _texts(value: object, name: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(each, str) for pair in value.items() for each in pair
    ):
        raise UserError(f"{name}={value!r}: give an object with texts")
    for key, text in value.items():
        if _VARIABLE.search(text) is None and re.search(
            r"auth|token|key|secret|password|cookie", key, re.IGNORECASE
        ):
            raise UserError(
                f"{name} has {key!r} in clear, which would be kept beside the tree: put it into a variable of the "
                f"environment and write '$NAME'"
            )
    return dict(value)


def _variable(match: re.Match[str]) -> str:
    name = match[1] or match[2]
    if name not in os.environ:
        raise UserError(f"the variable {name!r} is not set: an MCP server needs it")
    return os.environ[name]
