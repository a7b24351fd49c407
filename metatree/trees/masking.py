"""Files as they are read: what looks like a secret is masked, the same when nodes are built and when they are read."""

from __future__ import annotations

from metatree._util.secret_columns import masked_columns
from metatree._util.secret_text import masked, whole_secret
from metatree.trees.text import decode

_TABLES = (".csv", ".tsv")
_LOOSE = frozenset(
    (
        *(
            "bash",
            "cfg",
            "cnf",
            "conf",
            "config",
            "eml",
            "env",
            "ini",
            "ipynb",
            "json",
            "jsonl",
            "md",
            "markdown",
            "mbox",
        ),
        *("ndjson", "properties", "rst", "sh", "text", "toml", "txt", "yaml", "yml", "zsh"),
    )
)
"""Ends of names of files whose passwords may stand without quotes."""


def is_code(path: str) -> bool:
    """Whether a file is program code, by its name: a password there is a text in quotes, and `token: Token2` is none.

    Example:
        >>> [is_code(path) for path in ("src/app.py", "config/app.yaml", ".envrc", "Makefile", "main.tf")]
        [True, False, False, False, True]
    """
    name = path.rpartition("/")[2].lower()
    stem, dot, end = name.rpartition(".")
    return bool(stem and dot) and end not in _LOOSE and not name.startswith(".env")


def _masked(path: str, text: str) -> tuple[str, int]:
    text, number = masked(text, code=is_code(path))
    if not path.lower().endswith(_TABLES):
        return text, number
    text, cells = masked_columns(text)
    return text, number + cells


def masked_data(path: str, data: bytes) -> bytes:
    """Return the bytes of a text file with its secrets masked, as `masked_file` does."""
    text, encoding = decode(data, python=path.endswith((".py", ".pyi", ".pyw")))
    masked_text, number = _masked(path, text)
    return masked_text.encode(encoding, "surrogateescape") if number else data


def masked_file(path: str, data: bytes) -> tuple[bytes, int, str]:
    """Return the bytes of a text file with its secrets masked, and how many they were.

    Args:
        path: its name says how passwords stand in it.
        data: the file; one without a secret is returned as it is.

    Returns:
        The bytes, the number of secrets, and what the file is when it is little else, in words; else empty.
    """
    text, encoding = decode(data, python=path.endswith((".py", ".pyi", ".pyw")))
    masked_text, number = _masked(path, text)
    stars = sum(one != other for one, other in zip(text, masked_text, strict=True)) if number else 0
    what = whole_secret(text, stars)
    if not number:
        return data, 0, what
    return masked_text.encode(encoding, "surrogateescape"), number, what
