"""Texts that look like secrets: found by their shape, to be masked in what is read and left out of what is sent.

A shape proves nothing: a secret without one is not found, and an example key in a document is. Each kind is looked for
only where a text has the letters that it cannot do without, and within so many characters, so that a text takes a
time that grows with its length alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from metatree._util.entities import unescaped

SHAPES_VERSION: Final = "11"
"""Another one has files read again, since other texts are masked."""

NAME = (
    r"(?:(?:password|passwd|passphrase|passcode|pwd|credential|secret(?:[_-]?access)?(?:[_-]?key)?"
    r"|(?:(?<![a-z])|(?<=pg))pass|api[_ -]?key|access[_ -]?key"
    r"|(?:private|account|signing|encryption|master|app|hmac)[_-]?key|(?:auth|access|refresh)[_ -]?token|token)"
    r"(?:[_-]?(?:base|hash|value|plain|text|new|old|confirm(?:ation)?|default|prod(?:uction)?|staging|stage|test"
    r"|dev(?:elopment)?|live|main|primary|secondary|current|next|previous|fallback|backup|root|admin|github|gitlab))?"
    r"s?[_-]?\d{0,3})"
)
"""How what holds a secret is called, in any case: `db_password2`, `SECRET_KEY_BASE`, `PGPASS`."""
_TYPE = r"(?:[ \t]{0,3}:?[ \t]{0,3}[a-z_][\w.\[\]<>|&]{0,40}(?=\s{0,3}=))?"
"""What may stand between a name and its value: `token: str = "…"`, `var token string = "…"`."""
_GAP = r"(?:[ \t]{0,40}|\s{0,3})"
"""What may stand around a sign: settings are aligned, and a value may stand on the next line."""
_YAML = r"(?:[!&][\w./:-]{1,40}[ \t]{1,3})?(?:[|>][-+\d]{0,2}[ \t]{0,3}\r?\n[ \t]{1,40})?"
"""A tag, an anchor, and the sign of a block, whose value begins on the next line."""
_LETTERS_AND_DIGITS = r"(?=[^\s\"'\\]{0,200}\d)(?=[^\s\"'\\]{0,200}[A-Za-z])"


class _Shape(NamedTuple):
    kind: str
    marks: tuple[str, ...]
    """One of these is in every text that has such a secret."""
    shape: re.Pattern[str]


def _shape(kind: str, marks: str, shape: str, *, inside: bool = False) -> _Shape:
    """Return a shape that no ASCII letter or digit stands before, unless it may be inside of a word.

    Not a boundary as `\\b` has it: between two Chinese letters there is none, and a key may stand there.
    """
    before = "" if inside else "(?<![A-Za-z0-9])"
    return _Shape(kind, tuple(marks.split()), re.compile(before + f"(?:{shape})"))


_SHAPES: Final = (
    _shape("an AWS access key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _shape(
        "a GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})",
    ),
    _shape("a Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    _shape("a Google key", "AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _shape("a Stripe key", "k_live_ k_test_", r"[rs]k_(?:live|test)_[0-9A-Za-z]{16,255}"),
    _shape("a package registry token", "npm_ pypi-", r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,255})"),
    _shape("a key of a model provider", "sk-", r"sk-(?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,255}"),
    _shape("a private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    _shape(
        "a private key",  # as a text of base64, in settings of clusters, in one line or many: -----BEGIN … PRIVATE
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFU|BQUklWQVRF|BFQyBQUklWQVRF|BPUEVOU1NI|BFTkNSWVBURUQg)[A-Za-z0-9+/=]{40,}+"
        r"(?:(?:\\r)?(?:\\n|\r?\n)[ \t]{0,40}[A-Za-z0-9+/]{4,}+={0,2}(?![^\s\"'\\]))*+",
        inside=True,
    ),
    _shape(  # three parts that are signed, or five that are encrypted; what is none is passed over as a whole
        "a JSON web token",
        "eyJ",
        r"(?P<value>eyJ[\w-]{10,}+(?:\.eyJ[\w-]{10,}+\.[\w-]{5,}+|\.[\w-]*+\.[\w-]{10,}+\.[\w-]{10,}+\.[\w-]{10,}+))"
        r"|eyJ[\w-]*+",
    ),
    _shape(
        "a key in JSON",
        "\"kty\" 'kty'",
        r"[\"'](?:d|p|q|dp|dq|qi|k)[\"']\s{0,9}:\s{0,9}[\"'](?P<value>[\w-]{20,}+)",
    ),
    _shape(
        "a password or key",  # of registries, in the settings of Docker
        '"auths"',
        r"\"auth\"\s{0,9}:\s{0,9}\"(?P<value>[A-Za-z0-9+/]{12,}+={0,2})\"",
    ),
    _shape(
        "a key of a provider",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,200}",
    ),
    _shape("a key of a provider", "/api/webhooks/", r"/api/webhooks/\d{15,25}/[\w-]{40,100}", inside=True),
    _shape("a key of a provider", ":AA", r"\d{8,12}:AA[\w-]{32,40}"),
    _shape("a key of a provider", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,80}"),
    _shape(
        "a key of a provider",
        " ".join(f"-us{digit}" for digit in range(1, 10)),
        r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])",
    ),
    _shape("a key of a provider", "Q~", r"[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    _shape(
        "a bearer token",
        "bearer Bearer BEARER",
        r"(?i:bearer)\s{1,5}(?P<value>(?=[^\s\d]{0,200}\d)[A-Za-z0-9_.~+/-]{16,2000}=*)",
    ),
    _shape(
        "a password or key",
        "uthorization UTHORIZATION",
        r"(?i:authorization)[\"'\\]{0,3}\s{0,3}[:=,]\s{0,3}[\"'\\]{0,3}[A-Za-z]{2,20}\s{1,3}"
        r"(?P<value>(?=[^\s\d]{0,200}\d)[A-Za-z0-9_.~+/-]{8,2000}=*)",
    ),
    _shape(
        "a password or key",
        "curl",
        r"curl(?=\s)[^\n]{0,300}?\s(?:-u|--user)[\s=]{1,3}[\"']?[^\s:\"'$]{1,60}:(?P<value>[^\s\"'\\]{3,200})",
    ),
    _shape(
        "a password in an address",
        "://",
        r"://[^\s/:@\"'\\]{0,100}:(?P<value>[^\s/@\"'\\]{3,5000})@",
        inside=True,
    ),
    _shape(
        "a password in an address",  # as JSON of PHP and properties of Java write it
        ":\\/\\/ \\://",
        r":(?:\\?/){2}[^\s/:@\"'\\]{0,100}\\?:(?P<value>[^\s/@\"'\\]{3,5000})@",
        inside=True,
    ),
)
_PROVIDERS: Final = {
    r"[A-Za-z0-9]{26,255}": (
        "hf_ api_org_ gsk_ r8_ lin_api_ lin_oauth_ ntn_ xai- pplx- sbp_ rubygems_ CLOJARS_ dop_v1_ doo_v1_"
        " dor_v1_ shpat_ shpss_ shpca_ shppa_ sntryu_ pul- EZAK EZTK ATBB AKID oy2 sqp_ squ_ sqa_ jina_ NRAK-"
        " aio_ napi_ e2b_"
    ),
    r"[\w-]{20,255}": (
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- GR1348941 glsa_ figd_"
        " GOCSPX- dckr_pat_ dckr_oat_ sq0csp- sq0atp- tskey- lsv2_ pcsk_ nvapi- CFPAT- HRKU- PMAK- sb_secret_"
        " nfp_ bkua_ tvly- xkeysib- shippo_live_ rzp_live_ sgp_ FLWSECK pscale_ LTAI"
    ),
    r"[\w=.:%+/-]{32,20000}": (
        "SG. hvs. hvb. hvr. ya29. whsec_ sntrys_ ATATT3 ATCTT3 ABSK AKCp fm1_ fm2_ glc_ ops_eyJ dt0c01."
        " dp.pt. dp.st. dp.ct. dp.sa. xapp-1- xoxe. 1//0 sk.eyJ"
    ),
    r"[A-Za-z0-9%+/]{40,120}=?": "sig=",
    r"[0-9a-f]{32}(?![A-Za-z0-9])": "dapi key- SK",
    r"[A-Za-z0-9]{14}\.[0-9a-f]{64}": "pat",
    r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,30}": "re_",
    r"[0-9a-f]{8}-[0-9a-f-]{27,60}": "pat-na1- pat-eu1- sdk- access-production-",
}
"""How keys of providers go on behind what they begin with, as scanners of secrets know them; each has a digit."""
_ASSIGNED = re.compile(
    rf"(?i){NAME}(?![a-z0-9])[\"'\\*`]{{0,4}}{_GAP}(?:[:?+]?=>?|:|\bis\b)[*_]{{0,2}}{_GAP}{_YAML}[\"'\\*`]{{0,4}}"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\,;]{{8,200}})"
)
_VALUE = re.compile(  # `- name: DB_PASSWORD` with `value: …` behind it, in YAML and in JSON; `value="…"` of XML
    rf"(?i){NAME}[\"']{{0,2}}\s{{0,3}},?\s{{0,40}}[\"']?value[\"']?(?:\s{{0,3}}:\s{{0,3}}[\"']?|\s?=\s?[\"'])"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\,;]{{8,200}})"
)
_ELEMENT = re.compile(  # also `<key>password</key><string>…</string>`, and attributes in the tag
    rf"(?i){NAME}(?:</key>\s{{0,40}}<string)?(?:[\"'\s][^<>]{{0,200}})?>\s{{0,40}}(?:<!\[CDATA\[)?"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s<>\]]{{8,200}}+)(?:(?:\]\]>)?\s{{0,40}}</|(?<=[^\s<>\]]{{200}}))"
)
_QUOTED = re.compile(
    rf"(?i){NAME}(?![a-z0-9])[\"'\\]{{0,4}}\]?{_TYPE}{_GAP}(?:[:?+|]{{0,2}}=>?|:|<-|(?<=[\"']),){_GAP}\(?[brf]?\\?[\"'`]{{1,3}}"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'`\\]{{8,200}}+)(?:\\?[\"'`]|(?<=[^\s\"'`\\]{{200}}))"
)
_BEHIND_BLANK = re.compile(  # `PASSWORD '…'` of SQL, and `password TEXT DEFAULT '…'`
    rf"(?i)(?:{NAME}|identified\s{{1,3}}by)(?:\s{{1,3}}[a-z]{{3,12}}(?:\(\d{{1,5}}\))?(?:\s{{1,3}}not\s{{1,3}}null)?\s{{1,3}}default)?"
    rf"\s{{1,3}}[\"'](?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\]{{8,200}}+)(?:[\"']|(?<=[^\s\"'\\]{{200}}))"
)
_OPTION = re.compile(  # `--db-password …`
    rf"(?i)(?<=-){NAME}\s{{1,3}}[\"']?(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\-][^\s\"'\\]{{7,200}})"
)
_INSIDE_QUOTES = re.compile(  # `"Server=db;Password=…;"`
    rf"(?i)(?<=[;\"']){NAME}\s?=\s?(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\,;]{{8,200}}+)"
    rf"(?:(?=[;\"'])|(?<=[^\s\"'\\,;]{{200}}))"
)
_NAME_MARKS = ("pass", "pwd", "secret", "credential", "identified")
"""How the names begin: a search for these texts costs a tenth of one for the expression."""
_KEY_MARKS = (
    "api",
    "private",
    "account",
    "signing",
    "encryption",
    "master",
    "app_k",
    "app-k",
    "appk",
    "hmac",
)
_TOKEN_MARKS = ("auth", "refresh", "token")
"""How those begin that end in `key`, or in `token`; `access` ends in both."""
_BEGIN = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 [A-Z ]{0,30}PRIVATE KEY ----"
)
_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,.()-]{0,20000}")
_LONG = re.compile(r"[A-Za-z0-9+/=]{16}")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{24,}")
_BEFORE_LINES, _BETWEEN_LINES, _LAST_LINE = 400, 100, 200
"""How many characters may stand before the first line of a key, between two, and from the last full one to its end."""
_PLACEHOLDER = re.compile(
    r"^\$|\$[{(]|\{[^}]*\}|^<.*>$|%[s(]|^[\w.]+[(\[]|\*\*\*|\.\.\.|^(?:pass(?:word|wd)?|pwd|secret|token|user(?:name)?|x+|changeme|none|null)$",
    re.IGNORECASE,
)
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
    return _replaced(text, _secret_spans(text, code=code), lambda secret, kind: _NO_BLANK.sub("*", secret))


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


_ESCAPED = re.compile(r"\\([_.~+=:@#*-])|&(?:#\w{2,8};?|[A-Za-z]{3,12};)")
_NO_BLANK = re.compile(r"\S")
_LONGEST_VALUE = 200
_REST = re.compile(r"[^\s\"'`\\,;<>]*")
"""What may stand behind the last letter of a value that a shape looks at."""


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
        if start < at:
            start, _, kind = together.pop()
        together.append((start, end, kind))
        at = end
    return together


def _secret_spans(text: str, *, code: bool = False) -> list[tuple[int, int, str]]:
    """Return where secrets are, in order: start, end, kind."""
    spans = _plain_spans(text, code=code)
    if not code and (plain := _without_escapes(text)):
        said, places = plain

        def place(at: int) -> int:
            behind, source = places[bisect_right(places, (at, len(text))) - 1]
            return source + at - behind

        spans += [(place(start), place(end), kind) for start, end, kind in _plain_spans(said)]
    return sorted(spans)


def _without_escapes(text: str) -> tuple[str, list[tuple[int, int]]] | None:
    """Return a text as Markdown shows it where signs are escaped or are entities, None where none is.

    With it come places behind each such sign, in what is returned and in the text.
    """
    parts, places, length, at = list[str](), [(0, 0)], 0, 0
    for match in _ESCAPED.finditer(text) if "\\" in text or "&" in text else ():
        sign = match[1] or unescaped(match[0])
        if len(sign) == 1 and "!" <= sign <= "~":
            parts += [text[at : match.start()], sign]
            length += match.start() - at + 1
            at = match.end()
            places.append((length, at))
    return ("".join([*parts, text[at:]]), places) if parts else None


def _plain_spans(text: str, *, code: bool = False) -> list[tuple[int, int, str]]:
    spans = [(start, end, "a private key") for start, end in _private_keys(text)]
    for kind, marks, shape in _SHAPES:
        for mark in marks:
            if mark in text:
                spans += _matches(kind, shape.finditer(text))
                break
    for body, begins in _PROVIDERS.items():
        for begin in begins.split():
            if begin in text:
                spans += _matches("a key of a provider", _keys_of_provider(text, begin, body))
    if places := _name_places(text):
        named = [(_QUOTED, ""), (_INSIDE_QUOTES, "=")] if code else [(_ASSIGNED, "")]
        named += [(_BEHIND_BLANK, ""), (_OPTION, "-")]
        for shape, mark in (*named, (_VALUE, "value"), (_ELEMENT, "</")):
            if mark in text:
                found = (match for at in places if (match := shape.match(text, at)))
                spans += _matches("a password or key", found)
    return spans


def _name_places(text: str) -> list[int]:
    """Return where names of what holds a secret may begin."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters become two
        lower = "".join(char.lower() if char.isascii() else char for char in text)
    key, token = ("key" in lower, "token" in lower) if text.isascii() else (True, True)
    marks = _NAME_MARKS + _KEY_MARKS * key + _TOKEN_MARKS * token + ("access",) * (key or token)
    return [at for mark in marks for at in _places(lower, mark)]


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _keys_of_provider(text: str, begin: str, body: str) -> Iterator[re.Match[str]]:
    shape, at = _provider(begin, body), text.find(begin)
    while at >= 0:
        if match := shape.match(text, at):
            yield match
        at = text.find(begin, match.end() if match else at + 1)


@cache
def _provider(begin: str, body: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(begin)}(?=[A-Za-z_=.:%+/-]{{0,100}}\d){body}")


def _matches(kind: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, int, str]]:
    for match in matches:
        group: str | int = "value" if "value" in match.re.groupindex else 0
        value = match[group]
        if value is None:
            continue
        if group and (value.startswith("[left out:") or _PLACEHOLDER.search(value)):
            continue
        if value.count("*") < len(value):
            yield match.start(group), match.end(group), kind


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield where keys in PEM form are, from their first line to their last, or to where they break off."""
    if "PRIVATE KEY" not in text:
        return
    heads = list(_BEGIN.finditer(text))
    if not heads:  # the words alone, as in this line of code
        return
    for head, after in zip(heads, [*(each.start() for each in heads[1:]), len(text)], strict=True):
        sign = "---- END " if head[0].startswith("---- ") else "-----END "
        body = _BODY.match(text, head.end(), after)
        assert body is not None
        end = text.find(sign, head.end(), body.end() + 9)
        if end < 0:
            plain = body.end() if _LONG.search(body[0]) else 0  # what only names its head is no key
            lines = _end_of_lines(text, head.end(), after)
            end = text.find(sign, lines, min(lines + _LAST_LINE, after)) if lines else -1
            if end < 0:
                if lines or plain:  # it breaks off
                    yield head.start(), max(lines, plain)
                continue
        last = text.find("-----", end + 9, end + 60)
        yield head.start(), end + 9 if last < 0 else last + 5


def _end_of_lines(text: str, start: int, after: int) -> int:
    """Return where the lines of a key end that stand in something, 0 when there are none.

    That is a comment, a quotation, the texts of a program or of a notebook, each with its own signs around a line.
    """
    end, most = start, _BEFORE_LINES
    for run in _KEY_LINE.finditer(text, start, after):
        if run.start() - end > most:
            break
        line = run[0]
        if line.upper() != line != line.lower() and any(map(str.isdigit, line)):
            end, most = run.end(), _BETWEEN_LINES
    return end if end > start else 0


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
