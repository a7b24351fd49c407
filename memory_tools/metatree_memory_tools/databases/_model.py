"""What a database says of itself, whichever it is: schemas with tables, these with columns and foreign keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import chain, pairwise, repeat
from typing import Any, Protocol
from urllib.parse import quote, unquote

from metatree._util.secret_text import masked, without_secrets

SAMPLE_ROWS = 10
SECRET = re.compile(
    r"pass(?:word|wd|phrase|code)?s?|pwd|passw|secrets?|tokens?|api_?keys?|private_?keys?|access_?keys?|credentials?"
    r"|salt|otp|totp|pin(?:_?code)?|cvv|cvc|ssn|session_?(?:id|key|data)|cookies?|auth(?:orization)?|bearer|signature"
    r"|(?:credit_?)?card_?(?:number|no)|iban",
    re.IGNORECASE,
)
_ENDS = re.compile(r"(?:hash|digest|encrypted|enc|value|text|plain|md5|sha\d*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table or view."""

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str = ""
    key: bool = False
    """Whether it belongs to the primary key."""

    @property
    def is_secret(self) -> bool:
        """Whether its name says that it may hold passwords, tokens or the like."""
        return is_secret_name(self.name)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values are keys of another table."""

    columns: tuple[str, ...]
    table: tuple[str, str]
    """Schema and name of the other table."""
    targets: tuple[str, ...]
    """The columns there; none where the key is meant."""


@dataclass(frozen=True)
class Table:
    """A table, a view or what else has rows."""

    schema: str
    name: str
    kind: str
    """`table` or `view`."""
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[str, ...] = ()
    comment: str = ""
    rows: int | None = None
    """How many rows it has, None when it was not counted."""
    exact: bool = True
    """Whether `rows` was counted; else it is an estimate."""
    sample_digest: str = ""
    """Hash of the sample rows, so that a change of them shows."""
    problem: str = ""
    """Why it has no sample rows; a view may refer to what is gone."""

    @cached_property
    def refers_to(self) -> dict[str, list[str]]:
        """What each column that is part of a foreign key refers to: `TABLE.COLUMN`, or `TABLE` for its key."""
        found: dict[str, list[str]] = {}
        for foreign in self.foreign_keys:
            targets = chain((f".{target}" for target in foreign.targets), repeat(""))
            for column, target in dict(zip(foreign.columns, targets, strict=False)).items():
                found.setdefault(column, []).append(f"{foreign.table[1]}{target}")
        return found


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gave, at most as many rows as were asked for."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False
    """Whether there are further rows."""
    masked: frozenset[int] = field(default_factory=frozenset)
    """Numbers of the columns whose values are not shown."""
    hidden: tuple[str, ...] = ()
    """Names of columns that may hold secrets and were read as empty, wherever the statement names them."""

    def digest(self) -> str:
        """Return a hash of what is shown: 32 hexadecimal digits."""
        content = repr((self.columns, self.rows)).encode("utf-8", "replace")
        return blake2b(content, digest_size=16).hexdigest()


def rows_without_secrets(rows: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return rows with `*` for what looks like a secret in a cell, as in a file of text; keys in PEM form, too.

    Example:
        >>> rows_without_secrets([("ann", "password=hunter2hunter2", 3)])
        (('ann', 'password=**************', 3),)
    """
    return tuple(tuple(without_secrets(value, masked)[0] for value in row) for row in rows)


class OpenDatabase(Protocol):
    """An open database that can only be read."""

    title: str
    product: str
    has_schemas: bool
    """Whether its tables lie in schemas that are worth a level of their own."""

    def tables(self) -> Iterator[Table]:
        """Yield all tables and views, in the order of schemas and names."""
        ...

    def sample(self, schema: str, table: str, limit: int = SAMPLE_ROWS) -> Rows:
        """Return some rows of a table."""
        ...

    def find(self, schema: str, table: str, texts: Sequence[str], limit: int) -> Rows:
        """Return the rows of a table that hold the most of some texts, in any case; raises as `query`."""
        ...

    def query(self, sql: str, limit: int) -> Rows:
        """Run one statement that reads.

        Raises:
            UserError: it is refused, wrong, or takes too long.
        """
        ...

    def close(self) -> None:
        """Close it."""
        ...


def is_secret_name(name: str) -> bool:
    """Whether the name of a column says that its values may be secrets.

    Example:
        >>> [is_secret_name(name) for name in ("password_hash", "userToken2", "api_key", "tokenizer", "passenger")]
        [True, True, True, False, False]
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).strip("_ ")
    parts = [part for part in re.split(r"[\W_]+", words) if part and not _ENDS.fullmatch(part)]
    joined = [*parts, *(f"{a}_{b}" for a, b in pairwise(parts)), words]
    return any(SECRET.fullmatch(part.rstrip("0123456789")) for part in joined)


def key_of(*names: str) -> str:
    """Return names as one key: parts of an id, each without `/`, `#` and `:` of its own.

    Example:
        >>> key_of("main", "a/b"), names_of("main/a%2Fb")
        ('main/a%2Fb', ['main', 'a/b'])
    """
    return "/".join(quote(name, safe=" !$&'()*+,;=@~-._äöüßÄÖÜ") or "%" for name in names)


def public_key_of(*names: str) -> str:
    """Return names as one key, with a hash in the place of each that looks like a secret: `*` could stand for several.

    Example:
        >>> public_key_of("main", "ghp_" + "aB3dE5fG7h" * 3 + "I9jK1l")
        'main/masked-5c9fe105c6d2'
    """
    return "/".join(
        f"masked-{blake2b(name.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
        if masked(name)[1]
        else key_of(name)
        for name in names
    )


def names_of(key: str) -> list[str]:
    """Return the names that `key_of` joined."""
    return ["" if part == "%" else unquote(part) for part in key.split("/")]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names in a row, not all of many."""
    text = ", ".join(names[:most])
    return f"{text}, … ({len(names)} in all)" if len(names) > most else text
