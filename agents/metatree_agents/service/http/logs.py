"""The log of the service: readable lines, or one JSON object a line, and never a secret in either.

Routes are logged by template, since addresses hold proofs; and the line is scrubbed as well, since exceptions hold
addresses.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TextIO

from metatree._util.secret_text import shapes_masked

Form = Literal["text", "json", "none"]
LOGGERS: Final = ("metatree", "uvicorn")
# A proof, a cookie or a key, wherever it got in: in an address, a header, a dictionary that was printed.
_NAMED: Final = re.compile(
    r"""(?ix) \b( hash | nonce | secret | token | cookie | set-cookie | authorization | csrf | password | api[_-]?key )
        (?: \\?["'] )? \s* (?: [=:] | ',\s*b?' ) \s* (?: b?\\?["'] )? (?: bearer\s+ )? ( [^\s&"'\\;,})\]]+ )"""
)
_KEY: Final = re.compile(r"(?i)\b(?:mtk-[\w-]{8,}|bearer\s+[\w.~+/=-]{8,})")
_CREDENTIALS: Final = re.compile(r"(://[^/\s:@]*):[^/\s@]+@")
HIDDEN: Final = "[hidden]"


def redacted(text: str) -> str:
    """Return a text without what looks like a proof, a cookie, a key or a password in it.

    Example:
        >>> redacted("GET /api/login?User=Ann&Nonce=PSjUAS82NcDKgwXq&Hash=d3dd6832")
        'GET /api/login?User=Ann&Nonce=[hidden]&Hash=[hidden]'
        >>> redacted("Authorization: Bearer mtk-abcdefghijkl")
        'Authorization: [hidden]'
    """
    text = _KEY.sub(HIDDEN, text)
    text = _NAMED.sub(_hidden, text)
    return _CREDENTIALS.sub(rf"\1:{HIDDEN}@", text)


def _hidden(match: re.Match[str]) -> str:
    # A key was hidden before; what is left of it here is the beginning of that word.
    return (
        match[0] if match[2].startswith(HIDDEN[:-1]) else match[0][: match.start(2) - match.start()] + HIDDEN
    )


def _shown(record: logging.LogRecord, text: str) -> str:
    """Return a text of a record as the log has it; what went wrong may repeat a file that is out of form."""
    text = redacted(text)
    return shapes_masked(text) if record.levelno >= logging.WARNING or record.exc_info else text


class TextLines(logging.Formatter):
    """A line for people: time, level when it is not the usual one, message, request id."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback below it where there is one."""
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        fields = getattr(record, "fields", {})
        request = f" [{fields['request_id']}]" if "request_id" in fields else ""
        line = f"{at} {level}{_visible(record.getMessage())}{request}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return _shown(record, line)


class JsonLines(logging.Formatter):
    """One JSON object a line: `at` (UTC), `level`, `logger`, `message`, the fields of a request, `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = {
            "at": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _shown(record, record.getMessage()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["error"] = _shown(record, self.formatException(record.exc_info))
        return json.dumps(fields)


@contextmanager
def logging_to(form: Form, *, stream: TextIO | None = None, debug: bool = False) -> Iterator[None]:
    """Write the log of the service, its engine and its server to a stream while the block runs.

    Args:
        form: `text`, `json`, or `none` for warnings alone, as before the block.
        stream: where to; standard error by default.
        debug: whether what engines and probes do all the time is written too.
    """
    if form == "none":
        yield
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root, named = logging.getLogger(), [logging.getLogger(name) for name in LOGGERS]
    before = (root.handlers[:], [(logger, logger.level) for logger in named])
    root.handlers[:] = [handler]
    for logger in named:
        logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        for logger, level in before[1]:
            logger.setLevel(level)


def _visible(text: str) -> str:
    """Return a text in one line that cannot drive a terminal or look like another line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
