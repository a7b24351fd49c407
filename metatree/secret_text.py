"""Texts that look like secrets: found by their shape, to be warned of and left out of what leaves the machine.

A shape proves nothing: a secret without one is not found, and an example key in a document is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_SHAPES: Final = (
    (
        "a private key",
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\:,-]{0,20000}?"
            r"-----END [A-Z ]{0,30}PRIVATE KEY-----"
            r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{0,20000}"
        ),
    ),
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,100}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}")),
    ("a Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("a Stripe key", re.compile(r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,255}")),
    ("a package registry token", re.compile(r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,255})")),
    ("a key of a model provider", re.compile(r"\bsk-[A-Za-z0-9_-]{20,255}")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{5,1000}")),
    ("a bearer token", re.compile(r"(?i)\bbearer\s+(?P<value>[A-Za-z0-9_.~+/-]{16,2000}=*)")),
    (
        "a password in an address",
        re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'\\]{0,100}:(?P<value>[^\s/@\"'\\]{3,200})@"),
    ),
    (
        "a password or key",
        re.compile(
            r"(?i)\b(?:[a-z0-9]+[_-])?(?:password|passwd|passphrase|pwd|secret|api[_ -]?key|access[_ -]?key"
            r"|auth[_ -]?token|token)\b[\"'\\]{0,4}\s{0,3}(?:=|:|\bis\b)\s{0,3}[\"'\\]{0,4}"
            r"(?P<value>(?=[^\s\"'\\]{0,200}\d)(?=[^\s\"'\\]{0,200}[A-Za-z])[^\s\"'\\,;]{8,200})"
        ),
    ),
)


def secrets_in(text: str) -> list[str]:
    """Return what a text seems to hold, in words, each kind once; empty when nothing looks like a secret.

    Example:
        >>> secrets_in("log in with password = hunter2hunter2")
        ['a password or key']
        >>> secrets_in("the password is printed on the router")
        []
    """
    return list(dict.fromkeys(kind for kind, _, _ in _found(text)))


def redacted(text: str) -> tuple[str, int]:
    """Return a text with what looks like secrets left out, and how many they were.

    Example:
        >>> redacted("postgres://ann:s3cret-s3cret@db/shop")
        ('postgres://ann:[left out: a password in an address]@db/shop', 1)
    """
    spans = sorted(((start, end, kind) for kind, start, end in _found(text)), key=lambda span: span[:2])
    kept, at, number = [], 0, 0
    for start, end, kind in spans:
        if start < at:  # inside one that was left out already
            continue
        kept += [text[at:start], f"[left out: {kind}]"]
        at, number = end, number + 1
    return "".join([*kept, text[at:]]), number


def _found(text: str) -> Iterator[tuple[str, int, int]]:
    for kind, shape in _SHAPES:
        for match in shape.finditer(text):
            value = "value" if "value" in shape.groupindex else 0
            if not match.group(value).startswith("[left out:"):
                yield kind, match.start(value), match.end(value)


def without_secrets(value: Any) -> tuple[Any, int]:
    """Return a JSON value with what looks like secrets left out of all its texts, keys too, and how many they were.

    Example:
        >>> without_secrets({"dsn": ["postgres://ann:s3cret-s3cret@db/shop", 5]})[1]
        1
    """
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        pairs = [(without_secrets(key), without_secrets(item)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in pairs}, sum(n + m for (_, n), (_, m) in pairs)
    if isinstance(value, list | tuple):
        items = [without_secrets(item) for item in value]
        return [item for item, _ in items], sum(number for _, number in items)
    return value, 0
