"""A package with one plug-in, as files: what it may be called, and what is written."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Final, Literal

from metatree import plugins
from metatree.errors import MetatreeError, UserError
from metatree.trees.sources import refuse_link_out

PluginKind = Literal["memory-type", "source", "tool", "router"]

_MOST_CHARS: Final = 60
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
"""Of the names that a distribution may have, those that need no care: as a word of a shell, a file, a module."""
_OWN: Final = ("metatree", "metatree-memory")
_TAKEN: Final = ("file", "folder", "http", "https")


@dataclass(frozen=True, slots=True)
class _Kind:
    group: str
    provides: str
    """What the entry point names in the module, as a template."""
    text: str
    """What the package is, in a few words."""


_KINDS: Final[Mapping[PluginKind, _Kind]] = {
    "memory-type": _Kind(plugins.MEMORY_TYPES, "${type}Files", "Files of terms as memory"),
    "source": _Kind(plugins.SOURCES, "${type}Source", "Contacts in a JSON file as memory"),
    "tool": _Kind(plugins.TOOLS, "tools", "Tools for texts"),
    "router": _Kind(plugins.ROUTERS, "suite", "A router by common words"),
}


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """A package that was written."""

    name: str
    """Of the distribution."""
    kind: PluginKind
    group: str
    """Of its entry point."""
    entry: str
    """Name of the plug-in: the distribution's without `metatree-`."""
    object: str
    """`MODULE:NAME`, what the entry point names."""
    path: Path
    """Its folder, absolute."""
    files: tuple[str, ...]
    """Relative to the folder, with `/`."""


def make_package(name: str, kind: PluginKind = "memory-type", out: Path | None = None) -> NewPlugin:
    """Write a package with a plug-in that works, its test and its README.

    Args:
        name: of the distribution; the module has `_` for `-`.
        out: the folder of the package, which must not be there; None for one of this name in the current folder.

    Raises:
        UserError: the name cannot be used, or the folder is there or cannot be made.
        MetatreeError: the files cannot be written; nothing of them is left.
    """
    module = _module(name)
    entry = re.sub(r"^metatree[-_]", "", name)
    about = _KINDS[kind]
    if not _NAME.fullmatch(entry):
        raise UserError(
            f"{name!r} leaves {entry!r} for the plug-in, which begins with no letter; choose another name"
        )
    if entry in _TAKEN:
        raise UserError(f"{entry!r} has a meaning of its own before a location; choose another name")
    if entry in plugins.names(about.group):
        raise UserError(f"a plug-in {entry!r} of {about.group!r} is installed; choose another name")
    if out is not None:
        refuse_link_out(out)
    words = {
        "name": name,
        "module": module,
        "entry": entry,
        "type": "".join(word.capitalize() for word in re.split(r"[-_]", entry)),
        "group": about.group,
        "text": about.text,
    }
    words["provides"] = Template(about.provides).substitute(words)
    code = kind.replace("-", "_")
    templates = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"src/{module}/__init__.py": f"{code}.py",
        f"tests/test_{module}.py": f"test_{code}.py",
    }
    words["usage"] = _filled(f"usage_{code}.md", words).rstrip("\n")
    folder = (Path(name) if out is None else out).absolute()
    _write(folder, {file: _filled(template, words) for file, template in templates.items()})
    return NewPlugin(
        name, kind, about.group, entry, f"{module}:{words['provides']}", folder, tuple(sorted(templates))
    )


def _module(name: str) -> str:
    """Return the name of the module of a distribution.

    Raises:
        UserError: the name is none, or belongs to something else.
    """
    if len(name) > _MOST_CHARS or not _NAME.fullmatch(name):
        raise UserError(
            f"{name[: _MOST_CHARS + 1]!r} is no name for a package: use lower-case letters, digits and single `-`, a"
            f" letter first, at most {_MOST_CHARS} characters, such as metatree-recipes"
        )
    from importlib.metadata import distributions  # loads email and zipfile

    module = name.replace("-", "_")
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise UserError(f"{name!r} is a word of Python, so no module can have this name; choose another name")
    if module in sys.stdlib_module_names or module == "tests":
        raise UserError(
            f"{name!r} is a module of Python or of tests; choose another name, such as metatree-{name}"
        )
    installed = {re.sub(r"[-_.]+", "-", each.name or "").lower() for each in distributions()}
    found = find_spec(module)
    # Python finds a folder of the current folder too, where that is on its path; `_write` says what is wrong with it.
    is_here = found is not None and set(found.submodule_search_locations or ()) == {str(Path.cwd() / module)}
    if re.sub(r"[-_]+", "-", name) in {*_OWN, *installed} or (found is not None and not is_here):
        raise UserError(f"a package {name!r} is installed; choose another name")
    return module


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = (files(__package__) / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files into a folder that is made here, all of them or none."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError as exc:
        raise UserError(
            f"{str(folder)!r} is there; name another folder with --out, or another package"
        ) from exc
    except OSError as exc:
        raise UserError(
            f"cannot make the folder {str(folder)!r}: {exc.strerror or exc}; name another with --out"
        ) from exc
    try:
        for file, text in texts.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except BaseException as exc:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(exc, OSError):
            raise MetatreeError(f"cannot write to {str(folder)!r}: {exc.strerror or exc}") from exc
        raise
