"""Texts that look like secrets: found by their shape, to be masked in what is read and left out of what is sent.

A shape proves nothing: a secret without one is not found, and an example key in a document is. Each kind is looked for
only where a text has the letters that it cannot do without, and within so many characters, so that a text takes a
time that grows with its length alone.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from metatree._util._random_tokens import has_random, random_tokens
from metatree._util._secret_manifests import manifest_values
from metatree._util._secret_names import named_values
from metatree._util._secret_shapes import (
    PROVIDERS,
    keys_of_provider,
    long_tokens,
    mixed_tokens,
    shapes_of,
)
from metatree._util.entities import unescaped
from metatree._util.private_keys import private_keys

_BY_NAME: Final = "a password or key"
_PARTS_KEYS: Final = re.compile(r"(?:\\[nrt]|[\s<>\"'&;])+")
_MARKDOWN_SIGN: Final = re.compile(r"[_*]")
_COLOUR: Final = re.compile(r"(?:\x1b|\\x1b|\\e|\\033|\\u001b)\[[\d;:]{0,60}(?!machine\s)[mK]", re.IGNORECASE)
"""ECMA-48, SGR, and EL as grep writes it behind each; as they are, and as programs and JSON write them.

Not the first letter of a line of netrc that stands in brackets."""
_OF_AN_ESCAPE: Final = re.compile(r"\\(?:[ntr]|f[BIRP])[\w.~+=/-]{12}")
_OF_A_COLOUR: Final = re.compile(r"\[[\d;:]{0,60}[mMkK][\w.~+=/-]{12}")
"""Where the last letter of an escape or of a colour may be the first one of a key: `\\npm_…`."""
_IN_KEY: Final = re.compile(r"[\w+/=-]")
_LEAST_KEY: Final = 16
"""Signs of a key that has a form of its own."""
SHAPES_VERSION: Final = "34"
"""Another one has files read again, since other texts are masked."""

_PLACEHOLDER = re.compile(
    r"^\$|\$[{(]|\{[^}]*\}|^<.*>$|%s(?![A-Za-z0-9])|%\(|\*\*\*|\.\.\.|^(?:pass(?:word|wd)?|pwd|secret|token|user(?:name)?|x+|changeme|none|null)$",
    re.IGNORECASE,
)
_CALL = re.compile(r"^[\w.]+[(\[]")
"""What is no value behind a name, but where a program gets one."""
_WHOLE = (
    (
        "a state of Terraform",
        re.compile(r'^\s*\{(?=[^{]{0,2000}"terraform_version"\s*:)(?=[^{]{0,2000}"lineage"\s*:)'),
    ),
    ("a key of a service account", re.compile(r'"type"\s*:\s*"service_account"')),
    ("a private key", re.compile(r"^PuTTY-User-Key-File-")),
)
_MOST_HIDDEN = 0.5
"""A text of which more is secrets than this, blanks apart, holds nothing else."""


def secrets_in(text: str) -> list[str]:
    """Return what a text seems to hold, in words, each kind once; empty when nothing looks like a secret.

    Example:
        >>> secrets_in("log in with password = hunter2hunter2")
        ['a password or key']
        >>> secrets_in("the password is printed on the router")
        []
    """
    return list(dict.fromkeys(kind for _, _, kind in _secret_spans(text)))


def redacted(text: str) -> tuple[str, int]:
    """Return a text with what looks like secrets left out, and how many they were.

    Example:
        >>> redacted("postgres://ann:s3cret-s3cret@db/shop")
        ('postgres://ann:[left out: a password in an address]@db/shop', 1)
    """
    return _replaced(text, _secret_spans(text), lambda secret, kind: f"[left out: {kind}]")


def masked(text: str, *, code: bool = False) -> tuple[str, int]:
    """Return a text with `*` for each character of what looks like a secret, and how many secrets they were.

    Lines and columns stay as they are.

    Args:
        text: the text.
        code: whether it is program code, where a password is a text in quotes, and what stands without quotes is not.

    Example:
        >>> masked("password = 'hunter2hunter2'; login(password)", code=True)
        ("password = '**************'; login(password)", 1)
    """
    return _replaced(text, _secret_spans(text, code=code), _stars)


def shaped_keys(text: str) -> frozenset[str]:
    """Return the words of keys in a text that are known by a form of their own: tokens, and lines of private keys.

    Example:
        >>> shaped_keys("<b>AKIAQ3EGRB7TZ5KMX2WD</b> password: long-enough-a-word")
        frozenset({'AKIAQ3EGRB7TZ5KMX2WD'})
    """
    keys = set[str]()
    for start, end, _ in _shaped_spans(text)[0]:
        words = _PARTS_KEYS.split(text[start:end])
        keys.update(word for word in words if len(word) >= _LEAST_KEY and "*" not in word)
    return frozenset(keys)


def shapes_masked(text: str) -> str:
    """Return a text with `*` in place of what is known by a form of its own; what a name alone says of stays.

    For messages, in which names stand before words that are no passwords.

    Example:
        >>> shapes_masked("'postgres://ann:s3cret@db' is no file; wrong password: tell-me")
        "'postgres://ann:******@db' is no file; wrong password: tell-me"
    """
    hidden, _ = _replaced(text, sorted(_shaped_spans(text)[0]), _stars)
    return without_keys(hidden, shaped_keys(text))[0]


def without_keys(text: str, keys: Iterable[str]) -> tuple[str, int]:
    """Return a text with `*` in place of keys that are known, whatever stands beside them, and how many they were.

    Example:
        >>> without_keys(r"the keyAKIAQ3EGRB7TZ5KMX2WDis", ["AKIAQ3EGRB7TZ5KMX2WD"])
        ('the key********************is', 1)
    """
    number = 0
    for key in sorted(keys, key=len, reverse=True):  # one may be the beginning of another
        for said in {key, _MARKDOWN_SIGN.sub(r"\\\g<0>", key)}:
            if said in text:
                number += text.count(said)
                text = text.replace(said, "*" * len(said))
    return text, number


def _stars(secret: str, kind: str) -> str:
    if kind == "a private key":
        return _OF_KEY.sub(lambda sign: sign[1] or "*", secret)
    return _NO_BLANK.sub("*", secret)


def whole_secret(text: str, hidden: int) -> str:
    """Return what a text is when it is little but secrets, in words; empty when there is something else to it.

    Args:
        text: the text as it was.
        hidden: how many of its characters `masked` replaced.
    """
    head = text[:4_000]
    for kind, shape in _WHOLE:
        if shape.search(head) and (kind != "a key of a service account" or '"private_key"' in head):
            return kind
    if hidden and hidden > _MOST_HIDDEN * sum(map(len, text.split())):
        return "nothing but what looks like keys or passwords"
    return ""


_ESCAPED = re.compile(
    r"\\([_.~+=:@#*/|-])|&(?:#\w{2,8};?|[A-Za-z]{2,12};)|(\*{1,3}|`{1,3}|(?<!=)=\r?\n)(?=[\w~+=/-]|\.\w)"
)
_MAY_PART = ("\\", "&", "*", "`")
_SOFT_BREAKS = ("=\n", "=\r\n")
"""RFC 2045, 6.7: ends of lines that are none, of a letter that says so."""
_IN_WORD = re.compile(r"[\w.~+=/-]")
_HEADS = tuple(re.compile(rf"[^\s;,\"'`()\[\]{{}}<>@|{more}]{{3,}}") for more in ("", ":="))
_NO_BLANK = re.compile(r"\S")
_OF_KEY = re.compile(r"(\\u[0-9A-Fa-f]{4}|\\.|[\s\",]+)|.")
"""What holds the lines of a key together in JSON stays: a notebook with one in it is to be read."""
_LEAST_VALUE, _LONGEST_VALUE = 3, 200
_REST = re.compile(r"[^\s\"'`\\,;<>]*")
"""What may stand behind the last letter of a value that a shape looks at."""
_BEHIND_MARK = re.compile(r"(?:(?:\\(?:[_.~+=:@#*/|-]|&\.?)|</?[A-Za-z][^<>\n]{0,60}>)[\w.~+=/-]+)+")
"""How a value goes on where a sign of it is escaped (`\\-` in Markdown, `\\&.` in a manual page), or a part marked."""


def _replaced(text: str, spans: list[tuple[int, int, str]], by: Any) -> tuple[str, int]:
    parts, at = [], 0
    together = _together(text, spans)
    for start, end, kind in together:
        parts += [text[at:start], by(text[start:end], kind)]
        at = end
    return "".join([*parts, text[at:]]), len(together)


def _together(text: str, spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return spans with those that overlap put together, and with the rest of long ones, which a shape may cut off."""
    together: list[tuple[int, int, str]] = []
    at = 0
    for start, end, kind in spans:
        if end <= at:
            continue
        if end - start >= _LONGEST_VALUE and kind != "a private key":
            rest = _REST.match(text, end)
            end = rest.end() if rest else end
        if text[end : end + 1] in ("\\", "<") and kind != "a private key":
            rest = _BEHIND_MARK.match(text, end)
            end = rest.end() if rest else end
        if start < at:
            start, _, kind = together.pop()
        together.append((start, end, kind))
        at = end
    return together


def _secret_spans(text: str, *, code: bool = False) -> list[tuple[int, int, str]]:
    """Return where secrets are, in order: start, end, kind."""
    spans = _plain_spans(text, code=code)
    if not code and (plain := _without_escapes(text)):
        said, place = plain

        def end_of(at: int) -> int:
            end = place(at)
            while end and text[end - 1] in "*`" and text[end - 2 : end - 1] != "\\":
                end -= 1  # the mark behind a key is none of it
            return end

        spans += [(place(start), end_of(end), kind) for start, end, kind in _plain_spans(said)]
    return sorted(spans)


def _without_escapes(text: str) -> tuple[str, Callable[[int], int]] | None:
    """Return a text as Markdown shows it where signs are escaped or are entities, or a part of a word is bold or code.

    None where none is.

    With it comes what says where in the text a place in it is.
    """
    parts, length, at = list[str](), 0, 0
    behind, sources = array("q", [0]), array("q", [0])  # each such sign: a text may have millions
    is_broken = any(map(text.__contains__, _SOFT_BREAKS)) and "quoted-printable" in text.lower()
    for match in _ESCAPED.finditer(text) if is_broken or any(map(text.__contains__, _MAY_PART)) else ():
        if match[2] and match[2][0] == "=" and not is_broken:
            continue
        if match[2]:
            before = parts[-1] if parts and at == match.start() else text[match.start() - 1 : match.start()]
            sign, known = "", _IN_WORD.match(before) is not None
        else:
            sign = match[1] or unescaped(match[0])
            known = len(sign) == 1 and "!" <= sign <= "~"
        if known:
            parts += [text[at : match.start()], sign]
            length += match.start() - at + len(sign)
            at = match.end()
            behind.append(length)
            sources.append(at)
    if not parts:
        return None

    def place(of: int) -> int:
        last = bisect_right(behind, of) - 1
        return sources[last] + of - behind[last]

    return "".join([*parts, text[at:]]), place


def _uncoloured(text: str) -> str:
    """Return a text of the same length in which colours, as programs write them into logs, end with no letter."""
    return _COLOUR.sub(lambda colour: colour[0][:-1] + " ", text) if "[" in text else text


def _apart(text: str) -> str:
    """Return a text of the same length in which no letter of an escape stands before a key, as in `"key:\\nAKIA…"`.

    In a manual page `\\fB` makes bold what follows.
    """
    if "\\" in text:
        for escape in ("\\n", "\\t", "\\r"):
            text = text.replace(escape, "\\ ")
        for font in ("\\fB", "\\fI", "\\fR", "\\fP"):
            text = text.replace(font, "\\f ")
    return text


def _plain_spans(text: str, *, code: bool = False) -> list[tuple[int, int, str]]:
    spans, mixed = _shaped_spans(text)
    named = (match for match in named_values(text, code=code) if not _CALL.match(match["value"]))
    spans += _matches(_BY_NAME, named)
    random = random_tokens(text, code=code) if has_random(mixed) else ()
    for start, end in (*random, *(() if code else manifest_values(text))):
        if end > start and not _PLACEHOLDER.search(text, start, min(end, start + _LONGEST_VALUE)):
            spans.append((start, end, _BY_NAME))
    return spans


def _shaped_spans(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return where keys are that have a form of their own, and the tokens in the text that may be one."""
    spans = [(start, end, "a private key") for start, end in private_keys(text)]
    uncoloured = _uncoloured(text)
    readings = [(uncoloured, _apart(uncoloured))]
    if _OF_AN_ESCAPE.search(text) or (uncoloured != text and _OF_A_COLOUR.search(text)):
        readings.append((text, text))
    found = []
    for whole, apart in readings:
        tokens = long_tokens(apart)
        for kind, shape, spaced in shapes_of(text, tokens):
            spans += _matches(kind, shape.finditer(whole if spaced else apart))
        mixed = mixed_tokens(tokens)
        found.append(mixed)
        for body, begins in PROVIDERS.items() if mixed else ():
            for begin in begins.split():
                if begin in mixed:
                    spans += _matches("a key of a provider", keys_of_provider(apart, begin, body))
    return spans, " ".join(found)


def _matches(kind: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, int, str]]:
    for match in matches:
        group: str | int = "value" if "value" in match.re.groupindex else 0
        value = match[group]
        if value is None:
            continue
        if group and (placeholder := _PLACEHOLDER.search(value)):
            # What a shape takes may run into what stands behind a value: `…22;{x}`.
            heads = [found[0] for each in _HEADS if (found := each.match(value))]
            if placeholder.start() >= _LEAST_VALUE and placeholder[0] not in ("...", "***"):
                heads.append(value[: placeholder.start()])
            if head := next((each for each in heads if not _PLACEHOLDER.search(each)), ""):
                yield match.start(group), match.start(group) + len(head), kind
            continue
        if group and value.startswith("[left out:"):
            continue
        if value.count("*") < len(value):
            start, end = match.span(group)
            yield start, _closing_quote(match.string, start, end) if group else end, kind


def _closing_quote(text: str, start: int, end: int) -> int:
    """Return where a value ends that begins behind a quote: at the same one in its line, whatever stands before it."""
    quote = text[start - 1 : start]
    if not quote or quote not in "\"'`":
        return end
    line = text.find("\n", end, end + _LONGEST_VALUE)
    at = text.find(quote, end, end + _LONGEST_VALUE if line < 0 else line)
    return end if at < 0 else at


def joined_elements(texts: Iterable[str]) -> str:
    """Join the texts of elements of a page that stand beside each other; see `apart_elements`.

    Example:
        >>> joined_elements(["Key ID", "AKIAQ3EGRB7TZ5KMX2WD", "Copy it", "alics", " x"])
        'Key ID AKIAQ3EGRB7TZ5KMX2WD Copy italics x'
    """
    return "".join(apart_elements(texts))


def apart_elements(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text of elements that stand beside each other, with a blank between a key and what is beside it.

    Between `<code>` and `<button>` nothing need stand, and behind another letter a key is known by nobody. A key of
    which a part is an element stays in one piece.
    """
    last = " "
    for text in texts:
        parted = (
            _IN_KEY.match(last[-1]) and _IN_KEY.match(text) and _are_apart(last.split()[-1], text.split()[0])
        )
        yield f" {text}" if parted else text
        last = text or last


def _are_apart(word: str, following: str) -> bool:
    """Whether one of two words is a key, and none goes on from one into the other."""
    if not any(len(each) >= _LEAST_KEY and masked(each)[1] for each in (word, following)):
        return False
    return not any(start < len(word) < end for start, end, _ in _secret_spans(word + following))


def without_secrets(value: Any, hide: Callable[[str], tuple[str, int]] = redacted) -> tuple[Any, int]:
    """Return a JSON value with what looks like secrets left out of all its texts, keys too, and how many they were.

    Args:
        value: the value.
        hide: leaves them out of one text; `masked` puts `*` in their place.

    Example:
        >>> without_secrets({"dsn": ["postgres://ann:s3cret-s3cret@db/shop", 5]})[1]
        1
    """
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        pairs = [(without_secrets(key, hide), without_secrets(item, hide)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in pairs}, sum(n + m for (_, n), (_, m) in pairs)
    if isinstance(value, list | tuple):
        items = [without_secrets(item, hide) for item in value]
        return [item for item, _ in items], sum(number for _, number in items)
    return value, 0
