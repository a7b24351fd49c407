"""Files as they are read: what looks like a secret is masked, the same when nodes are built and when they are read."""

from __future__ import annotations

import re
from typing import Final

from metatree._util.secret_columns import masked_columns, masked_tables
from metatree._util.secret_text import masked, whole_secret
from metatree.trees.text import decode

_TABLES: Final = ("csv", "tsv", "tab", "psv", "dat")
_CODE: Final = re.compile(
    r"asm|astro|c|cc|cjs|clj|cljc|cljs|coffee|cpp|cr|cs|css|cts|cu|cuh|cxx|d|dart|el|elm|erl|ex|exs|f90|"
    r"fs|fsx|gd|gemspec|gleam|glsl|go|gql|graphql|groovy|h|hcl|hh|hpp|hrl|hs|htm|html|hxx|inl|ipp|java|jl|"
    r"js|jsx|kt|kts|less|lhs|lisp|lua|m|mjs|ml|mli|mm|mts|nim|nomad|odin|pas|php|phtml|pl|pm|proto|ps1|"
    r"psm1|py|pyi|pyw|pyx|r|rake|rb|rkt|rs|s|sass|sc|scala|scm|scss|sol|sql|sv|svelte|svg|swift|t|tcl|tf|"
    r"thrift|ts|tsx|v|vala|vb|vhd|vim|vue|wgsl|xsl|zig"
)
"""Ends of names of program code. In all other files, known or not, a password may stand without quotes."""
_COPIES: Final = re.compile(r"backup|bak|dist|example|in|j2|local|old|orig|sample|save|template|tmpl")
"""Ends that say what a file of another kind is for: `app.py.bak`, `values.yaml.example`."""


def is_code(path: str) -> bool:
    """Whether a file is program code, by its name: a password there is a text in quotes, and `token: Token2` is none.

    Example:
        >>> [is_code(path) for path in ("src/app.py", "app.py.bak", "main.tf", ".envrc", "app.log", "Makefile")]
        [True, True, True, False, False, False]
    """
    name, stem, end = _named(path)
    return bool(stem and _CODE.fullmatch(end)) and not name.startswith(".env")


def _named(path: str) -> tuple[str, str, str]:
    """Return the name of a file, and what it is without the ends that say it is a copy."""
    name = path.rpartition("/")[2].lower()
    stem, _, end = name.rpartition(".")
    while "." in stem and _COPIES.fullmatch(end):
        stem, _, end = stem.rpartition(".")
    return name, stem, end


def _masked(path: str, text: str) -> tuple[str, int]:
    is_program = is_code(path)
    text, number = masked(text, code=is_program)
    if is_program:
        return text, number
    text, cells = masked_columns(text) if _named(path)[2] in _TABLES else masked_tables(text)
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
    stars = masked_text.count("*") - text.count("*") if number else 0
    what = whole_secret(text, stars)
    if not number:
        return data, 0, what
    return masked_text.encode(encoding, "surrogateescape"), number, what
