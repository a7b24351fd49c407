"""Settings of the command line: defaults of options, from the user's own file and from that of the current folder.

The user's own is `config.toml` beside `trust.key` (`metatree.storage.user_key.config_folder`). That of a folder is
whoever made it, so it sets what is shown, what is left out and limits, and limits only downwards. What chooses a
router, an address, a source or a tool is taken from it after `metatree trust`, while the file stays as it was shown.

A value comes before one of: the command line, the environment, the folder, the user's own file, the default.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from metatree._util.links import former_places, link_out
from metatree._util.private import private_folder, write_whole
from metatree.errors import UserError
from metatree.settings_files import OWN, PROJECT, SettingsFile, read_settings, settings_in
from metatree.storage.store_files import is_exempt, is_of_another
from metatree.storage.user_key import config_folder, signature
from metatree_agents.cli._output import plain

USER_FILE: Final = "config.toml"
COMMANDS: Final = (
    *(
        "build",
        "ask",
        "find",
        "files",
        "context",
        "show",
        "remember",
        "memories",
        "describe",
        "forget",
        "audit",
    ),
    *("export", "import", "runs", "trace", "resume", "questions", "answer", "plan", "rules", "goals", "mcp"),
    *(
        "gateway",
        "serve",
        "service",
        "install",
        "uninstall",
        "plugins",
        "new-plugin",
        "trust",
        "schema",
        "doctor",
        "cache",
    ),
)
"""The commands that may have a table of their own."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A setting, which is the default of the options of its name."""

    form: str
    """`text`, `texts`, `number`, `whole`, `switch`."""
    words: str
    commands: tuple[str, ...] = ()
    """The commands that have it; empty for all that have such an option."""
    most: float | None = None
    """From a folder: at most so much, accepted or not. None for what a folder may not set, unless it was accepted."""
    anywhere: bool = False
    """Whether a folder may set it although it has no bound."""

    @property
    def of_folder(self) -> bool:
        return self.anywhere or self.most is not None


KEYS: Final[Mapping[str, _Key]] = {
    "k": _Key("whole", "how many sources, nodes or files are listed", ("ask", "find", "files"), most=100),
    "tokens": _Key("whole", "how many tokens `context` prints", ("context",), most=100_000),
    "max-calls": _Key("whole", "calls of a router or model in one search", most=200),
    "max-seconds": _Key("number", "seconds of one search", most=600),
    "verbose": _Key("switch", "print the path of a search too", anywhere=True),
    "quiet": _Key("switch", "say errors and warnings alone on standard error", anywhere=True),
    "ignore": _Key(
        "texts", "patterns as in `.gitignore` of what is no part of the tree", ("-",), anywhere=True
    ),
    "router": _Key("text", "the router, such as `ollama/qwen3:8b`"),
    "web": _Key("text", "address of a SearXNG instance"),
    "source": _Key("texts", "what is searched"),
    "tree": _Key("text", "where the tree lives"),
    "allow": _Key("texts", "tools that may change something"),
    "service": _Key("text", "address of a service that is asked instead of a tree", ("ask",)),
    "user": _Key("text", "who asks the service", ("ask",)),
    "trees": _Key("text", "trees of the service", ("ask",)),
    "sure": _Key("number", "how likely to be right a claim must be", ("ask",)),
    "kind": _Key("texts", "kinds of nodes that `find` lists", ("find",)),
    "human": _Key("switch", "put what stays open to a person", ("ask",)),
    "history": _Key("switch", "read the git history when a tree is built", ("build",)),
    "no-refresh": _Key("switch", "search the tree as it is"),
}
"""What can be set. Lost: every option of every command, among them those that delete or accept something."""

_PLACES: Final = ("source", "tree")
_HERE: Final = re.compile(r"[?&]sslrootcert=(?!/|%2F|~|system\b|&|$)", re.IGNORECASE)
"""The file of a certificate in the address of a database, without its whole path."""
_OF_TYPE: Final = re.compile(r"[a-z]{2,20}:(?=~)")
_LIMITS: Final = ("max-calls", "max-seconds")
_LOWER: Final[Mapping[tuple[str, str], float]] = {("mcp", "max-seconds"): 120}
"""Limits of commands where these are lower than those of others; `tools.toolkit.MAX_SECONDS`."""
_NOT: Final[Mapping[str, frozenset[str]]] = {
    "build": frozenset(["source", "tree"]),  # they would join those that are named
    "install": frozenset(["source"]),  # it would be written into the settings of a host
    "doctor": frozenset(["router"]),  # naming one there starts its self-test
}
_ENVIRONMENT: Final = {"router": ("METATREE_ROUTER", "METATREE_MODEL"), "web": ("METATREE_SEARCH_URL",)}


@dataclass(frozen=True, slots=True)
class _Setting:
    file: SettingsFile
    table: str
    """The command that it is for; empty for all."""
    key: str
    value: Any

    @property
    def where(self) -> str:
        return self.file.where(self.key, self.table)

    @property
    def name(self) -> str:
        return f"{self.table}.{self.key}" if self.table else self.key


def user_file() -> Path | None:
    """Return where the user's own settings are, whether they are there or not; None without a home."""
    folder = config_folder()
    return None if folder is None else folder / USER_FILE


def defaults(folder: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the defaults of options, as click's `default_map` has them, and what is not taken.

    Args:
        folder: the current folder.

    Returns:
        The defaults by command and parameter; the settings of the folder that nobody accepted, as `ask.router`.

    Raises:
        UserError: a file cannot be read, has an unknown key, or a value of another form; it names file and line.
    """
    own_path = user_file()
    own = None if own_path is None else read_settings(own_path)
    if own is not None and is_of_another(own.path.lstat()) and not is_exempt(own.path):
        raise UserError(
            f"{str(own.path)!r} belongs to another user: set METATREE_CONFIG_DIR to a folder of yours, or name that"
            " folder in METATREE_TRUST"
        )
    found: dict[str, dict[str, Any]] = {}
    for setting in () if own is None else _settings(own):
        if setting.key == "ignore":
            raise UserError(
                f"{setting.where}: ignore is for the {folder.name or 'source'} folder's metatree.toml"
            )
        _put(found, setting, _at_home(setting.value) if setting.key in _PLACES else setting.value)
    there = settings_in(folder)
    if there is None:
        return found, []
    refused = []
    accepted = _is_accepted(there)
    for setting in _settings(there):
        known = KEYS[setting.key]
        if not known.of_folder and not accepted:
            refused.append(setting.name)
        elif setting.key in _PLACES and (out := _out_of(folder, setting.value)):
            raise UserError(
                f"{setting.where}: {out!r} goes through a link that leads out of this folder: name where it leads"
            )
        elif (
            known.most is not None
        ):  # accepted or not: what is accepted is what was shown, and limits are not
            _put(found, setting, setting.value, known.most)
        else:
            _put(found, setting, setting.value)
    return found, refused


def own_sources() -> set[str]:
    """Return the sources that the user's own settings name, for whatever folder is current."""
    path = user_file()
    own = None if path is None else read_settings(path)
    values = [
        _at_home(each.value) for each in ([] if own is None else _settings(own)) if each.key == "source"
    ]
    return {text for value in values for text in ([value] if isinstance(value, str) else value)}


def _at_home(value: str | list[str]) -> str | list[str]:
    """Return places of the user's own settings with their home for `~`: a clone may have a folder of that name."""
    if isinstance(value, list):
        return [str(_at_home(each)) for each in value]
    if _HERE.search(value):
        raise UserError(
            f"{value!r} would name a file of whatever folder is current: give the whole path of sslrootcert"
        )
    kind = _OF_TYPE.match(value)
    begin = kind[0] if kind else ""
    return begin + os.path.expanduser(value[len(begin) :])  # noqa: PTH111  # it may be an address


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the settings of a folder ask for that is taken after `metatree trust` alone."""

    file: SettingsFile
    lines: list[str]
    """Each in words, visible."""
    accepted: bool


def wishes(folder: Path) -> Wishes | None:
    """Return the settings of a folder that need to be accepted; None without any.

    Raises:
        UserError: as `defaults`.
    """
    there = settings_in(folder)
    if there is None:
        return None
    lines = [
        f"sets {each.name} to {plain(json.dumps(_shown(each.value)))}{_sends(each)}"
        for each in _settings(there)
        if not KEYS[each.key].of_folder or _is_above(each)
    ]
    return Wishes(there, lines, _is_accepted(there)) if lines else None


KEYS_OF_MODELS: Final = "OPENAI_API_KEY, SYSTEMONE_API_KEY or TYPESAFE_API_KEY"
"""Where the key is that a model server is given."""
PASSWORDS: Final = "PGPASSWORD, METATREE_DATABASE_PASSWORD or ~/.pgpass"
"""Where the password is that a database is given."""
CREDENTIALS: Final = "with what METATREE_AUTH_ and the name of its host holds"
"""Where the credentials are that a server of an API is given."""


_SOURCES: Final = {
    "postgres": f"gives the database the password in {PASSWORDS}, if it asks",
    "mcp:": "starts servers in this folder, whose programs and modules may come first",
    "openapi:": f"calls the server that a description names, {CREDENTIALS}",
}
"""What is done for a source of such a location."""


def _sends(setting: _Setting) -> str:
    """Say which secret of the user a setting has sent, and what it starts or calls, rather once too often."""
    values = setting.value if isinstance(setting.value, list) else [str(setting.value)]
    said = "".join(
        "".join(values).split()
    ).casefold()  # who reads addresses passes over tabs and ends of lines
    match setting.key:
        case "source":
            return "".join(f", and {does}" for mark, does in _SOURCES.items() if mark in said)
        case "router" if "@" in said or "://" in said:
            return f", and sends what {KEYS_OF_MODELS} holds to it"
        case "service":
            return ", and sends what METATREE_SECRET holds to it"
    return ""


_WITH_PASSWORD: Final = re.compile(
    r"((?:(?:database|openapi|web):|mcp:(?=https?://))?(?:[\w./-]{1,200}@)?[a-z][a-z0-9+]{0,30}://[\w.~-]{0,200}):[^\s/@?#:]{1,200}"
    r"(@[\w.-]{1,253}(?::\d{1,5})?(?:[/?#](?:(?!://)[^\s@])*)?)",
    re.IGNORECASE,
)


def _shown(value: Any) -> Any:
    """Return a value as it is, but for a password in an address that cannot be read in any other way.

    What was hidden of a command, a path or a second address would be accepted unseen.
    """
    if isinstance(value, list):
        return [_shown(each) for each in value]
    found = _WITH_PASSWORD.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}:***{found[2]}" if found else value


def accept(settings: SettingsFile) -> None:
    """Take all that a file of settings says from now on, while it stays as it is.

    Raises:
        UserError: there is no place to keep that.
    """
    mark = _mark(settings.path)
    if mark is None:
        raise UserError("this user has no home to keep it in: set METATREE_CONFIG_DIR to a folder")
    private_folder(mark.parent)
    write_whole(mark, "\n".join({*_accepted(mark), _content(settings)}).encode(), mode=0o600)


def revoke(folder: Path) -> list[str]:
    """Take back all that files of settings of a folder ever said, and return their names."""
    revoked = []
    for name in (OWN, PROJECT):
        marks = [_mark_of(os.path.join(place, name)) for place in former_places(folder)]  # noqa: PTH118
        for mark in marks:
            if mark is not None and mark.exists():
                mark.unlink()
                revoked.append(name)
    return revoked


def _is_accepted(settings: SettingsFile) -> bool:
    if is_exempt(settings.path):
        return True
    mark = _mark(settings.path)
    return mark is not None and _content(settings) in _accepted(mark)


def _accepted(mark: Path) -> list[str]:
    """Return the digests of the texts that were accepted."""
    with suppress(OSError):
        return mark.read_text().split()
    return []


def _content(settings: SettingsFile) -> str:
    import hashlib

    return hashlib.sha256(settings.text.encode()).hexdigest()


def _mark(settings: Path) -> Path | None:
    """Return the file that says which settings were accepted in this place."""
    return _mark_of(os.path.join(os.path.realpath(settings.parent), settings.name))  # noqa: PTH118


def _mark_of(place: str) -> Path | None:
    folder = config_folder()
    said = place.encode("utf-8", "surrogatepass")
    return None if folder is None else folder / "accepted" / signature("settings", said)


def _settings(file: SettingsFile) -> Iterator[_Setting]:
    """Yield each setting of a file, those for one command after those for all. Raises UserError."""
    tables = []
    for key, value in file.values.items():
        if isinstance(value, dict) and key in COMMANDS:
            tables.append((key, value))
        else:
            yield _checked(file, "", key, value, (*KEYS, *COMMANDS))
    for command, values in tables:
        for key, value in values.items():
            yield _checked(file, command, key, value, tuple(KEYS))


def _checked(file: SettingsFile, table: str, key: str, value: Any, names: tuple[str, ...]) -> _Setting:
    if key not in KEYS:
        from difflib import get_close_matches

        if close := get_close_matches(key.replace("_", "-"), names, 1, 0.5):
            hint = f"did you mean {close[0]!r}?"
        else:
            hint = f"there are {', '.join(KEYS)}"
        raise UserError(f"{file.where(key, table)}: {key!r} is no setting: {hint}")
    form = KEYS[key].form
    if form == "texts" and isinstance(value, str):
        value = [value]
    good = {
        "text": isinstance(value, str) and bool(value.strip()),
        "texts": isinstance(value, list) and all(isinstance(each, str) and each.strip() for each in value),
        "number": isinstance(value, int | float) and not isinstance(value, bool) and value > 0,
        "whole": isinstance(value, int) and not isinstance(value, bool) and value > 0,
        "switch": isinstance(value, bool),
    }[form]
    if not good:
        needed = {
            "text": "a text",
            "texts": "a text or a list of texts",
            "number": "a number above 0",
            "whole": "a whole number above 0",
            "switch": "true or false",
        }[form]
        raise UserError(f"{file.where(key, table)}: {key} must be {needed}")
    return _Setting(file, table, key, value)


def _put(
    found: dict[str, dict[str, Any]],
    setting: _Setting,
    value: Any,
    most: float | None = None,
) -> None:
    """Make a setting the default of its option in the commands that it is for; at most `most`, and what is there."""
    key = setting.key
    if any(os.environ.get(variable) for variable in _ENVIRONMENT.get(key, ())):
        return
    parameter = key.replace("-", "_")
    for command in [setting.table] if setting.table else KEYS[key].commands or COMMANDS:
        if key in _NOT.get(command, ()):
            continue
        own = found.setdefault(command, {})
        bound = own.get(parameter, _LOWER.get((command, key), most)) if key in _LIMITS else most
        own[parameter] = value if most is None else min(value, most, bound)


def _out_of(folder: Path, value: str | list[str]) -> str:
    """Return the first place that a link in a folder leads out of it; empty for none.

    What was accepted were the names, and git may put a link in the place of any file.
    """
    for each in [value] if isinstance(value, str) else value:
        # In any way in which it may be read: with its type, such as `chats:`, and without; `~` may be a folder here.
        ends = [each, *(each[match.end() :] for match in re.finditer(":", each))]
        ends += [end.strip() for end in ends]
        if any(link_out(Path(way), folder) for way in (*ends, *map(os.path.expanduser, ends)) if way):
            return each
    return ""


def _is_above(setting: _Setting) -> bool:
    most = KEYS[setting.key].most
    return most is not None and setting.value > most
