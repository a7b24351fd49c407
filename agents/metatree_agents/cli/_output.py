"""Where the commands write: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from metatree._util.visible import escaped
from metatree._util.visible import visible as visible
from metatree.errors import MetatreeError, UserError

_sinks: list[Callable[[str], None]] = []
_quiet = False
_STYLES = {"bold": "1", "dim": "2", "green": "32", "yellow": "33", "red": "31", "cyan": "36"}
_STYLE = rf"\x1b\[(?:0|(?:{'|'.join(_STYLES.values())})(?:;(?:{'|'.join(_STYLES.values())}))*)m"
_DRIVES = re.compile(
    f"({_STYLE})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]",
)
"""What a terminal obeys besides ends of lines and tabs; first our own styles."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"  # no width
    "\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb]"  # struck through what stands before
    r"|(?<=\s)\s|[^\S ]"
)
"""What would hide or move something: blanks of all kinds but a single space, and what is written over a character."""


def prepare() -> None:
    """Let no character of a file name or a text break the output, whatever the terminal's encoding.

    Raises:
        UserError: standard output is closed.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for the whole process
    if sys.stdout is None:
        raise UserError("standard output is closed: write it to a file, or to /dev/null if nobody reads it")
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def coloured(stream: TextIO) -> bool:
    """Say whether to write colours: on a terminal that knows them, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def styled(text: str, *styles: str) -> str:
    """Return the text in a style when standard output shows colours; unchanged otherwise."""
    if not text or not coloured(sys.stdout):
        return text
    return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"


def write(lines: Iterable[str]) -> None:
    """Write result lines to standard output; a reader that went away (`| head`) is no failure.

    Raises:
        MetatreeError: they cannot be written, to a full disk for example.
    """
    try:
        for line in lines:
            sys.stdout.write(_tame(line, sys.stdout) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        raise MetatreeError(
            f"cannot write to standard output: {error.strerror or error}; make room there, or write elsewhere "
            "(a search is kept: `metatree resume` prints it again)"
        ) from error


def drop_output() -> None:
    """Send what is still to be written to standard output nowhere: Python flushes it again when it exits."""
    with suppress(OSError, ValueError):  # not a file of the system
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(command: str, value: Any, **more: Any) -> None:
    """Write what a command has made to standard output, as the JSON that `metatree schema` has for the command.

    Args:
        command: as the registry of schemas names it, such as `find`.
        value: its model, or what the model is made of: an object of the library, or a dictionary of its fields.
        more: fields that the object has not.
    """
    from metatree_agents.cli.schemas.registry import models_of

    [model] = models_of(command)
    write_object(model.model_validate(_Fields(value, more) if more else value).as_json())


class _Fields:
    """An object with further fields."""

    def __init__(self, value: Any, more: Mapping[str, Any]) -> None:
        self._value, self._more = value, more

    def __getattr__(self, name: str) -> Any:
        return self._more[name] if name in self._more else getattr(self._value, name)


def write_object(value: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output, in UTF-8 where the terminal has it."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not utf8)
    # JSON leaves what turns the writing of a terminal, and more, as it is in a text.
    write(
        line if line.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
        for line in text.split("\n")
    )


def note(text: str) -> None:
    """Write a line to standard error, or to where `notes_to` says."""
    if _sinks:
        _sinks[-1](text)
        return
    try:
        print(_tame(text, sys.stderr), file=sys.stderr, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def remark(text: str) -> None:
    """Write a line that says how it goes, as `note` does, unless --quiet was given."""
    if not _quiet:
        note(text)


def be_quiet(quiet: bool) -> None:
    """Say whether the command that runs leaves out remarks and bars."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _quiet


@contextmanager
def notes_to(sink: Callable[[str], None] | None) -> Iterator[None]:
    """Give notes to a function instead while the block runs; None changes nothing."""
    if sink is None:
        yield
        return
    _sinks.append(sink)
    try:
        yield
    finally:
        _sinks.remove(sink)


def agreed(question: str, unasked: str) -> bool:
    """Ask a person a question for yes or no, and return whether it was yes.

    Raises:
        UserError: nobody is at a terminal; `unasked` says what to do then.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError(unasked)
    print(f"{question} [y]es, [N]o: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def plain(text: str, what: re.Pattern[str] = _UNSEEN) -> str:
    """Return a text of somebody else's in which nothing is unseen, and nothing looks like a line of ours."""
    return visible(what.sub(lambda match: ascii(match[0])[1:-1].replace(" ", "\\x20"), text))


def word(text: str) -> str:
    """Return a text as one visible word of a command that a person may copy to a shell."""
    return shlex.quote(visible(text))


def one_line(text: str, width: int) -> str:
    """Return a text in one visible line of at most so many characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def counted(number: int, what: str) -> str:
    """Return a number of things in words, such as `1 node` and `2 nodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tame(text: str, stream: TextIO) -> str:
    """Return a text in which nothing but our own styles drives the terminal, whatever name or id was not `visible`."""
    return _DRIVES.sub(lambda found: found[0] if found[1] and coloured(stream) else escaped(found[0]), text)
