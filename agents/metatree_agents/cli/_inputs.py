"""From outside: texts (an argument, `-` for standard input, `@FILE`, `@@…` for `@…`), addresses, the user's name."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Sequence
from typing import Any

from metatree._util.named_file import read_named, refuse_name
from metatree.errors import UserError
from metatree_agents.cli import _options as options


def text_of(argument: str, *, what: str, whole: bool = False) -> str:
    """Return the text that an argument stands for, without surrounding white space.

    Args:
        argument: the text, `-`, `@FILE`, or `@@` and the rest of a text that begins with `@`.
        what: what the text is, for the error messages.
        whole: it is always a file or `-`: keep surrounding white space, so that lines keep their numbers.

    Raises:
        UserError: the file cannot be read or lies behind a link out of the current folder, the bytes are not UTF-8, or
            there is nothing in them.
    """
    file = None
    if argument == "-":
        if sys.stdin is None:
            raise UserError(f"standard input is closed: give the {what} as a text or @FILE")
        if sys.stdin.isatty():
            print(f"type the {what}, then Ctrl-D", file=sys.stderr)
        text = _decoded(sys.stdin.buffer.read(), "standard input")
    elif (file := named_file(argument)) is not None:
        if not file:
            raise UserError("no file is named after @: give @FILE, or @@ for a text that begins with @")
        path = options.path(file)
        try:
            text = _decoded(read_named(path), str(path))
        except OSError as error:
            # `whole` is for files alone; where a text may be given, its @ may have been meant.
            check = "check the path" if whole else "check the path, or write @@ for a text that begins with @"
            raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}; {check}") from error
    else:
        text = plain(argument.removeprefix("@") if argument.startswith("@@") else argument, what=what)
    if not text.strip() and file is not None:
        raise UserError(f"{file}: the {what} is empty")
    if not text.strip():
        raise UserError(f"the {what} is empty: give a text, @FILE, or - for standard input")
    return text if whole else text.strip()


def named_file(argument: str) -> str | None:
    """Return the file that an argument names after its `@`; None when it is a text itself.

    Raises:
        UserError: it may be the name of a file here, which a pattern of the shell has given.
    """
    if not argument.startswith("@") or argument.startswith("@@"):
        return None
    refuse_name(argument, "@FILE")
    return argument[1:]


def plain(argument: str, *, what: str) -> str:
    """Return an argument as the UTF-8 text that it is, whatever the locale took its bytes for.

    Raises:
        UserError: its bytes are not UTF-8.
    """
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:  # Python keeps bytes that the locale does not have as lone surrogates
        return _decoded(os.fsencode(argument), f"the {what}")
    return argument


def texts_of(arguments: Sequence[str], *, what: str) -> list[str]:
    """Return the text of each argument, as `asked_of` does; standard input can be named once."""
    if arguments.count("-") > 1:
        raise UserError("standard input (-) can be read only once")
    return [asked_of(argument, what=what) for argument in arguments]


def asked_of(argument: str, *, what: str) -> str:
    """Return the text of an argument that is asked and kept with its answer: secrets of a file are masked."""
    from metatree._util.secret_text import masked

    text = text_of(argument, what=what)
    return text if named_file(argument) is None else masked(text)[0]


def one_question(texts: Sequence[str]) -> list[str]:
    """Return three words and more that came one by one as the one question that they are.

    Example:
        >>> one_question(["How", "long", "is", "it", "kept?"]), one_question(["How long?", "Why?"])
        (['How long is it kept?'], ['How long?', 'Why?'])
    """
    apart = len(texts) > 2 and not any(len(text.split()) > 1 for text in texts)
    return [" ".join(texts)] if apart else list(texts)


def host_and_port(text: str, *, port_alone: bool) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `:PORT` or `[::1]:PORT`; without a host it is 127.0.0.1.

    Args:
        text: the address. Port 0 stands for a free one.
        port_alone: also take `PORT`.

    Raises:
        UserError: it is no such address.

    Example:
        >>> host_and_port("[::1]:8000", port_alone=False), host_and_port("8000", port_alone=True)
        (('::1', 8000), ('127.0.0.1', 8000))
    """
    host, colon, port = text.rpartition(":")
    # `isdigit` alone takes "²" too, of which `int` makes nothing.
    if not (
        port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535 and (colon or port_alone)
    ):
        alone = ", or PORT alone for this machine" if port_alone else ""
        raise UserError(
            f"{text!r} is no address: give HOST:PORT, such as 127.0.0.1:9090{alone}; port 0 takes a free one"
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def user_name() -> str:
    """Return who runs the command."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return "unknown"


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise UserError(
            f"{where} is not UTF-8 text (byte 0x{byte:02x} at offset {error.start}): convert it first, "
            "for example with `iconv -f LATIN1 -t UTF-8`"
        ) from error


def imported(name: str, option: str, example: str) -> Any:
    """Import what an option names as `module:name`; from the current folder only what is installed nowhere."""
    import importlib.util
    import sys

    module, _, attribute = name.partition(":")
    if not attribute:
        raise UserError(f"{option} {name!r}: give MODULE:NAME, such as {example}")
    refuse_name(name, "MODULE:NAME")
    try:
        if "" not in sys.path and importlib.util.find_spec(module.partition(".")[0]) is None:
            sys.path.append("")  # last, so that a folder puts nothing in the place of what is installed
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as exc:
        raise UserError(f"{option} {name!r} cannot be imported: {exc}") from exc
