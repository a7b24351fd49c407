"""What a gateway is given to mount: the entries of servers files, checked, with what is secret in them set apart."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.storage.user_key import user_key
from metatree.trees.sources import public_location
from metatree_agents.hosts.servers import fronted_folder, is_gateway, of_host, read_file

_log = logging.getLogger("metatree")

Kind = Literal["mcp", "openapi", "plugin"]
_OURS: Final = (
    "openapi",
    "plugin",
    "server",
    "auth",
    "allow",
    "allow_private",
    "read_only",
    "reuse",
    "seconds",
    "start_seconds",
)
_KNOWN: Final = ("command", "args", "env", "cwd", "url", "headers", *_OURS)
_WHERE: Final = ("command", "args", "env", "cwd", "url", "headers", "openapi", "plugin", "server", "auth")
_LEAST_SECRET: Final = 6
_NAME: Final = re.compile(r"[^\w.-]+", re.ASCII)
_SECRET: Final = re.compile(
    r"auth|token|key|secret|passw|pwd|cookie|credential|dsn|connection.?string", re.IGNORECASE
)


@dataclass(frozen=True)
class ServerEntry:
    """One server, as it is to be mounted."""

    name: str
    """Unique in a gateway; the first part of the ids of its tools."""
    kind: Kind
    settings: Mapping[str, Any] = field(repr=False)
    """As the file has them; what is secret in them too, so it is kept nowhere."""
    reuse: float | Literal["forever"] = 0.0
    """How long the answers of its tools that change nothing may be used again, in seconds."""
    seconds: float = 60.0
    """What a call may take."""
    start_seconds: float = 60.0
    """What it may take until it is ready."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Texts that must be in nothing that is kept or shown."""

    @property
    def place(self) -> str:
        """Where it is, in a form that may be kept: the program or the host of an address; no arguments, no values."""
        if self.kind == "mcp" and self.settings.get("command"):
            return f"{masked(str(self.settings['command']))[0]} …"
        location = public_location(str(self.settings.get("url") or self.settings.get(self.kind) or ""))
        return masked(location.partition("?")[0])[0]

    @cached_property
    def identity(self) -> str:
        """What tells it from every other server, also from the same one for another account, and shows no secret."""
        return keyed_hash([self.kind, {key: self.settings[key] for key in _WHERE if key in self.settings}])

    @cached_property
    def origin(self) -> str:
        """What tells it from other servers whatever account it is used with: permissions are for this."""
        where = {key: self.settings[key] for key in _WHERE if key in self.settings}
        for key in ("env", "headers"):
            where[key] = sorted(where.get(key) or {})
        return keyed_hash([self.kind, where])


def keyed_hash(value: object) -> str:
    """Return a hash of JSON under this user's key, which shows nothing of it to others."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hmac.new(user_key(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def entries(
    files: Iterable[Path], hosts: Iterable[str], *, folder: Path, reuse: float = 0.0
) -> list[ServerEntry]:
    """Return what the hosts and files list, each under a name of its own; the same server twice is one.

    Hosts come first: a policy has rules by name, and a file may come from somebody else.

    Args:
        files: servers files, which this user named; their servers are started in their folder.
        hosts: hosts whose servers are taken over, and started in the user's home.
        folder: the current one, for hosts that have servers for single folders.
        reuse: for servers that do not say it themselves, in seconds.

    Raises:
        UserError: a file cannot be read, or an entry is not valid.
    """
    found: dict[str, ServerEntry] = {}
    names: set[str] = set()
    home = Path("~").expanduser()
    of_hosts = ((home, of_host(host, folder)) for host in hosts)
    # That of a host whose place the gateway takes is kept in a folder of ours.
    kept = fronted_folder()
    bases = ((home if file.absolute().parent == kept else file.absolute().parent, file) for file in files)
    for base, listed in (*of_hosts, *((base, read_file(file)) for base, file in bases)):
        for name, settings in listed.items():
            if is_gateway(name, settings):
                continue
            wanted = _NAME.sub("-", name).strip("-") or "server"
            entry = _entry(wanted, _placed(settings, base), reuse)
            if (same := found.get(entry.identity)) is not None:
                _warn_of(entry, same)
                continue
            own = _unique(wanted, names)
            if own != wanted:
                _log.warning(
                    "the server %r at %s is mounted as %r: another has its name", name, entry.place, own
                )
            found[entry.identity] = replace(entry, name=own)
    return list(found.values())


def _placed(settings: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return an entry with whole paths for where it is started, and for its description.

    Else what an entry starts would depend on the current folder, such as a clone that has a `server.py` or a package of
    that name: its program would have the permissions of the user's own.
    """
    result = dict(settings)
    if settings.get("command"):
        result["cwd"] = str(base / Path(str(settings.get("cwd") or "")).expanduser())
    if isinstance(place := settings.get("openapi"), str) and "://" not in place:
        result["openapi"] = str(base / Path(place.removeprefix("openapi:")).expanduser())
    return result


def _warn_of(entry: ServerEntry, same: ServerEntry) -> None:
    """Say what of an entry is not used, since the same server was listed before it."""
    if entry.name != same.name:
        _log.warning("the server %r is the same as %r, and is mounted under that name", entry.name, same.name)
    for key in _OURS:
        if key not in _WHERE and key in entry.settings and entry.settings[key] != same.settings.get(key):
            _log.warning(
                "the server %r is listed before without this: `%s` of %r is not used",
                same.name,
                key,
                entry.name,
            )


def _unique(name: str, names: set[str]) -> str:
    own, number = name, 1
    while own.casefold() in names:
        number += 1
        own = f"{name}-{number}"
    names.add(own.casefold())
    return own


def _entry(name: str, settings: Mapping[str, Any], reuse: float) -> ServerEntry:
    kinds: list[Kind] = [kind for kind in ("openapi", "plugin") if settings.get(kind)]
    kind: Kind = kinds[0] if kinds else "mcp"
    if kind == "mcp" and not isinstance(settings.get("url") or settings.get("command"), str):
        raise UserError(f"server {name!r}: give `command` and `args`, `url`, `openapi` or `plugin`")
    args = settings.get("args") or []
    if not isinstance(args, list) or not all(isinstance(each, str | int | float) for each in args):
        raise UserError(f"server {name!r}: args={args!r}: give a list of texts")
    for field_name in ("env", "headers", "auth"):
        value = settings.get(field_name) or {}
        if not isinstance(value, Mapping) or not all(
            isinstance(each, str | int | float) for each in value.values()
        ):
            raise UserError(f"server {name!r}: `{field_name}` must be an object of texts")
    if kind == "openapi" and not all(
        str(each).startswith("$") for each in (settings.get("auth") or {}).values()
    ):
        raise UserError(
            f'server {name!r}: `auth` has names of variables, with no braces: {{"SCHEME": "$SHOP_KEY"}}'
        )
    given = settings.get("reuse", reuse)
    if given != "forever" and not _is_seconds(given, least=0):
        raise UserError(f"server {name!r}: reuse={given!r}: give a number of seconds from 0 on, or 'forever'")
    times = {}
    for field_name in ("seconds", "start_seconds"):
        times[field_name] = settings.get(field_name, 60.0)
        if not _is_seconds(times[field_name], least=0.001) or times[field_name] > 3_600:
            raise UserError(
                f"server {name!r}: {field_name}={times[field_name]!r}: give seconds, at most 3600"
            )
    _check_read_only(name, settings.get("read_only", "hints"))
    # Hosts add fields of their own (timeouts, permissions, descriptions): what is not known is left alone.
    own = {key: settings[key] for key in _KNOWN if key in settings}
    return ServerEntry(
        name, kind, own, given, **{key: float(value) for key, value in times.items()}, secrets=_secrets(own)
    )


def _check_read_only(name: str, given: object) -> None:
    fits = given in ("hints", "none") or (
        isinstance(given, list) and all(isinstance(each, str) for each in given)
    )
    if not fits:
        raise UserError(
            f"server {name!r}: read_only={given!r}: give 'hints', 'none' or a list of names of tools"
        )


def _is_seconds(value: object, *, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < float("inf")


def _secrets(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is secret: by the name of a variable, header or option, or as the password of an address."""
    named = [
        (name, str(value)) for key in ("env", "headers") for name, value in (settings.get(key) or {}).items()
    ]
    words = [str(each) for each in settings.get("args") or []]
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("-") and "=" not in word:
            named.append((word, after))
        # `--token=…`, `-e TOKEN=…` of a container, `--header "Authorization: …"` of a bridge
        named += [(name, value.strip()) for name, sign, value in map(word.partition, "=:") if sign]
    values = [value for name, value in named if _SECRET.search(name)]
    places = (str(settings.get(name) or "") for name in ("url", "command", "cwd", "openapi"))
    for address in (*places, *words, *(value for _, value in named)):
        values += _secrets_of_address(address)
    found = {word for value in values for word in (value, value.rpartition(" ")[2], *_basic(value))}
    found |= {quote(word, safe="") for word in found}
    return tuple(sorted((word for word in found if len(word) >= _LEAST_SECRET), key=len, reverse=True))


def _secrets_of_address(text: str) -> list[str]:
    """Return the password of an address, and what is secret in its query by its name.

    Example:
        >>> _secrets_of_address("postgres://ann:pa%20ss@db/shop?sslmode=on&api_key=k3y")
        ['pa%20ss', 'pa ss', 'k3y']
    """
    try:
        parts = urlsplit(text)
        password = parts.password if "://" in text else None
    except ValueError:
        return []
    query = [value for name, value in parse_qsl(parts.query) if _SECRET.search(name)]
    return [*([password, unquote(password)] if password else []), *query]


def _basic(value: str) -> list[str]:
    """Return what a header of Basic authentication has in it: the user's name with the password, and that alone."""
    scheme, _, code = value.partition(" ")
    if scheme.casefold() != "basic":
        return []
    try:
        text = b64decode(code, validate=True).decode()
    except ValueError:
        return []
    return [text, text.partition(":")[2]]
