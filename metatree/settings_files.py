"""The settings that lie in a folder: `metatree.toml`, or the table `tool.metatree` of `pyproject.toml`.

Whoever made the folder wrote them, so each reader takes of them what a stranger may say.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from metatree._util.named_file import read_named
from metatree.errors import UserError

OWN: Final = "metatree.toml"
PROJECT: Final = "pyproject.toml"
_MOST_BYTES: Final = 1 << 20
_HEADER: Final = re.compile(r"\s*\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file of settings says."""

    path: Path
    values: dict[str, Any]
    text: str
    prefix: str = ""
    """How the tables of the settings begin in the file: `tool.metatree` in `pyproject.toml`."""

    def where(self, key: str, table: str = "") -> str:
        """Return the file and the line that a key is set in, such as `metatree.toml:3`."""
        wanted = ".".join(filter(None, (self.prefix, table)))
        header = ""
        names = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
        for number, line in enumerate(self.text.splitlines(), 1):
            if found := _HEADER.match(line):
                header = "".join(found[1].replace('"', "").split())
                if header == ".".join(filter(None, (wanted, key))):
                    return f"{self.path}:{number}"
            elif header == wanted and names.match(line):
                return f"{self.path}:{number}"
        return str(self.path)


def read_settings(path: Path) -> SettingsFile | None:
    """Read one file of settings; None where there is none, or a `pyproject.toml` says nothing of metatree.

    Raises:
        UserError: it is too large, no regular file, or no TOML; a `pyproject.toml` that is no TOML, as one is while
            it is merged, only if it may have rules of what is left out.
    """
    is_project = path.name == PROJECT
    try:
        state = path.lstat()
    except (OSError, ValueError):
        return None
    if is_project and (not stat.S_ISREG(state.st_mode) or state.st_size > _MOST_BYTES):
        return None  # it is not for us
    if not stat.S_ISREG(state.st_mode):
        raise UserError(f"{str(path)!r} is a link, or no regular file: put the settings there themselves")
    if state.st_size > _MOST_BYTES:
        raise UserError(f"{str(path)!r} has more than a megabyte: settings take less")
    from metatree._util import toml_text  # most folders have no such file, and each command looks

    try:
        data = read_named(path)
        if is_project and b"metatree" not in data:
            return None
        text = data.decode()
        values: Any = toml_text.loads(text)
    except OSError as exc:
        raise UserError(f"cannot read the settings in {str(path)!r}: {exc.strerror or exc}") from exc
    except (ValueError, RecursionError) as exc:
        if is_project and b"ignore" not in data:
            return None  # whoever uses it for what it is for will hear of that
        raise UserError(f"the settings in {str(path)!r} are no TOML: {exc or 'too deep'}") from exc
    if is_project:
        tool = values.get("tool")
        values = tool.get("metatree") if isinstance(tool, dict) else None
        if not isinstance(values, dict):
            return None
    return SettingsFile(path, values, text, "tool.metatree" if is_project else "")


def settings_in(folder: Path) -> SettingsFile | None:
    """Return the settings of a folder; `metatree.toml` goes before `pyproject.toml`. Raises as `read_settings`."""
    return read_settings(folder / OWN) or read_settings(folder / PROJECT)


def ignored_by(settings: SettingsFile) -> tuple[str, ...]:
    """Return the patterns, as those of `.gitignore`, of what the settings of a folder leave out of trees.

    Raises:
        UserError: `ignore` is neither a text nor a list of texts.
    """
    patterns = settings.values.get("ignore", [])
    if isinstance(patterns, str):
        return (patterns,)
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise UserError(f"{settings.where('ignore')}: ignore must be a text or a list of texts")
    return tuple(patterns)
