"""The hosts that `metatree install` knows: where each keeps its servers and skills, and how it writes a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from metatree.errors import UserError

Level = Literal["user", "project"]
Format = Literal["json", "toml"]


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts MCP servers. `{folder}` in a path is its own folder of settings."""

    name: str
    title: str
    folder: str
    """Its folder of settings; where it is, the host is taken to be installed."""
    user_file: str
    """Where servers for all projects are listed."""
    project_file: str | None
    """Where those of one project are, relative to it; None for a host that has one list alone."""
    user_skills: str
    project_skills: str
    keys: tuple[str, ...] = ("mcpServers",)
    """The object that the servers are in."""
    format: Format = "json"
    extra: Mapping[str, Any] | None = None
    """Fields of a server beside its command and arguments."""
    one_command: bool = False
    """Whether the command and its arguments are one list."""
    workspace: str | None = None
    """What the host puts the open folder in the place of; None where it starts servers in that folder."""
    starts_elsewhere: bool = False
    """Whether it starts servers in no folder of the project, and has no word for it: the entry names one."""
    variable: str = ""
    """Environment variable that names its folder."""
    other_files: Sequence[str] = ()
    """Other names of the user's and the project's file, taken where they are there."""
    besides: Sequence[str] = ()
    """Other files of a project, relative to it, whose servers it takes, too."""
    joins_above: bool = False
    """Whether it takes the files of the folders above the project, too, and joins entries of one name."""

    def own_folder(self) -> Path:
        """Return its folder of settings; a variable that names a relative one is passed over, as elsewhere."""
        named = os.environ.get(self.variable, "") if self.variable else ""
        if (
            not Path(named).expanduser().is_absolute()
        ):  # in a clone, its authors would have chosen what is written
            named = ""
        if self.variable == "XDG_CONFIG_HOME" and named:
            return Path(named, Path(self.folder).name)
        return _of_home(named or self.folder)

    def file(self, level: Level, root: Path) -> Path:
        """Return the file that lists the servers of a level; that of the user where there is no other."""
        own = self.project_file if level == "project" else None
        path = self._own(self.user_file) if own is None else root / own
        others = (path.with_name(name) for name in self.other_files)
        return path if path.exists() else next((other for other in others if other.exists()), path)

    def files_besides(self, path: Path, root: Path) -> Iterator[tuple[Path, Path]]:
        """Yield the other files beside one of a project whose servers the host takes, each with the folder it is of.

        Those above the project are the ones below the home folder, whatever lies there: hosts stop at the top of a
        repository, which each finds in its own way.
        """
        if self.project_file is None:
            return
        own = Path(self.project_file)
        files = [*(own.with_name(name) for name in (own.name, *self.other_files)), *map(Path, self.besides)]
        yield from ((root / each, root) for each in files if root / each != path)
        if self.joins_above:
            home = Path.home().resolve()
            above = takewhile(lambda folder: folder != home, root.parents) if root != home else ()
            yield from ((folder / each, folder) for folder in above for each in files)

    def skill(self, level: Level, root: Path) -> Path:
        """Return the file of the skill of a level."""
        folder = self._own(self.user_skills) if level == "user" else root / self.project_skills
        return folder / "metatree" / "SKILL.md"

    def is_there(self) -> bool:
        """Whether the host seems to be installed."""
        return self.own_folder().is_dir() or self._own(self.user_file).is_file()

    def entry(self, command: str, arguments: Sequence[str]) -> dict[str, Any]:
        """Return the server as the host writes one."""
        extra = dict(self.extra or {})
        before = {"type": extra.pop("type")} if "type" in extra else {}
        if self.one_command:
            return {**before, "command": [command, *arguments], **extra}
        return {**before, "command": command, "args": list(arguments), **extra}

    def _own(self, path: str) -> Path:
        return _of_home(path.replace("{folder}", str(self.own_folder())))


def _of_home(path: str) -> Path:
    """Return a path below the home of this user; raises `UserError` where that is relative, as it may be in a clone."""
    found = Path(path).expanduser()
    if not found.is_absolute():
        raise UserError(
            f"the home folder of this user is a relative one, {str(found)!r}: set HOME to a whole path"
        )
    return found


def _by_system(linux: str, mac: str, windows: str) -> str:
    return {"darwin": mac, "win32": windows}.get(sys.platform, linux)


# The places are those of the hosts' own pages on MCP servers and skills; all of them read skills (agentskills.io).
# Lost: rules files, one format for each host, of which Zed reads the first it finds and no other.
HOSTS: Final[Mapping[str, Host]] = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "Claude Code",
            folder="~/.claude",
            user_file="~/.claude.json",
            project_file=".mcp.json",
            user_skills="{folder}/skills",
            project_skills=".claude/skills",
            extra={"type": "stdio"},
        ),
        Host(
            "codex",
            "Codex",
            folder="~/.codex",
            variable="CODEX_HOME",
            user_file="{folder}/config.toml",
            project_file=".codex/config.toml",
            user_skills="~/.agents/skills",
            project_skills=".agents/skills",
            keys=("mcp_servers",),
            format="toml",
            joins_above=True,
        ),
        Host(
            "cursor",
            "Cursor",
            folder="~/.cursor",
            user_file="{folder}/mcp.json",
            project_file=".cursor/mcp.json",
            user_skills="{folder}/skills",
            project_skills=".cursor/skills",
            workspace="${workspaceFolder}",
        ),
        Host(
            "vscode",
            "VS Code",
            folder=_by_system(
                "~/.config/Code/User",
                "~/Library/Application Support/Code/User",
                "~/AppData/Roaming/Code/User",
            ),
            user_file="{folder}/mcp.json",
            project_file=".vscode/mcp.json",
            user_skills="~/.copilot/skills",
            project_skills=".github/skills",
            keys=("servers",),
            extra={"type": "stdio"},
            workspace="${workspaceFolder}",
        ),
        Host(
            "opencode",
            "OpenCode",
            folder="~/.config/opencode",
            variable="XDG_CONFIG_HOME",
            user_file="{folder}/opencode.json",
            project_file="opencode.json",
            other_files=("opencode.jsonc",),
            # https://opencode.ai/docs/config#precedence-order: these are laid over the file of the project.
            besides=(".opencode/opencode.json", ".opencode/opencode.jsonc"),
            joins_above=True,
            user_skills="{folder}/skills",
            project_skills=".opencode/skills",
            keys=("mcp",),
            extra={"type": "local", "enabled": True},
            one_command=True,
        ),
        Host(
            "gemini",
            "Gemini CLI",
            folder="~/.gemini",
            user_file="{folder}/settings.json",
            project_file=".gemini/settings.json",
            user_skills="{folder}/skills",
            project_skills=".gemini/skills",
        ),
        Host(
            "zed",
            "Zed",
            folder=_by_system("~/.config/zed", "~/.config/zed", "~/AppData/Roaming/Zed"),
            variable=_by_system("XDG_CONFIG_HOME", "", ""),
            user_file="{folder}/settings.json",
            project_file=".zed/settings.json",
            user_skills="~/.agents/skills",
            project_skills=".agents/skills",
            keys=("context_servers",),
        ),
        Host(
            "windsurf",
            "Windsurf",
            folder="~/.codeium/windsurf",
            user_file="{folder}/mcp_config.json",
            project_file=None,
            user_skills="{folder}/skills",
            project_skills=".windsurf/skills",
            starts_elsewhere=True,
        ),
    )
}
