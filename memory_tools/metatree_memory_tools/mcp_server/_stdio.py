"""A server that is a process: started, spoken to line by line, and ended with all that it started.

A line is read up to a size and no further, and its standard error is kept to its last words: a server that floods
costs what it is allowed and no more.

Lost: `mcp.client.stdio.stdio_client`, which takes lines of any length (each piece is joined to all before it, which
is quadratic, and no other thread runs meanwhile) and gives standard error a file without an end.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from metatree._util.process import program

MAX_LINE_BYTES = 16_000_000
"""Longer messages are not taken; what they answer is told so."""
TOO_LONG = -32_050
"""Code of the error in the place of an answer that is too long; of those that JSON-RPC leaves to programs."""
_LAST_BYTES = 2_000
_EXIT_S = 2.0
_ID = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]{1,100}")')
_METHOD = re.compile(rb'"method"\s*:')
_ENDS = 400
"""So many bytes at both ends of a message that is too long are looked at for what it answers."""


class StdioServer:
    """A command, and what is known of the process once it is started.

    Args:
        command: the program and its arguments.
        environment: what it is given besides the few variables that every one gets.
        folder: where it is started; None for the current one.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str | None) -> None:
        self._command = command
        self._environment = environment
        self._folder = folder
        self._errors = b""
        self.garbage = 0
        """How many of its lines were no message."""

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        return self._errors.decode("utf-8", "replace")

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Any]:
        """Start it; yield what the official client reads from and writes to.

        Raises:
            OSError: it cannot be started.
        """
        import anyio
        from mcp.client.stdio import get_default_environment

        name, *arguments = self._command
        if sys.platform == "win32":  # which looks into the current folder first
            name = program(
                name if Path(name).name == name else str(Path(self._folder or ".", name).absolute())
            )
        process = await asyncio.create_subprocess_exec(
            name,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(self._environment),
            cwd=self._folder,
            limit=MAX_LINE_BYTES,
            start_new_session=True,
        )
        incoming, read = anyio.create_memory_object_stream[Any](0)
        write, outgoing = anyio.create_memory_object_stream[Any](0)
        async with AsyncExitStack() as stack:
            tasks = [
                asyncio.create_task(self._read(process, incoming)),
                asyncio.create_task(self._write(process, outgoing, incoming)),
                asyncio.create_task(self._keep_last_words(process)),
            ]
            stack.push_async_callback(_end, process, tasks)
            for stream in (read, write, incoming, outgoing):
                stack.push_async_callback(stream.aclose)
            yield read, write

    async def _read(self, process: asyncio.subprocess.Process, incoming: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        assert process.stdout is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with incoming:
                async for line in _lines(process.stdout):
                    if not line.strip():
                        continue
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError as exc:
                        self.garbage += 1
                        await incoming.send(exc)
                    else:
                        await incoming.send(SessionMessage(message))

    async def _write(self, process: asyncio.subprocess.Process, outgoing: Any, incoming: Any) -> None:
        assert process.stdin is not None
        try:
            async for each in outgoing:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
        except OSError:
            await incoming.aclose()  # it reads no more: the session ends, instead of waiting for answers

    async def _keep_last_words(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(65_536):
            self._errors = (self._errors + piece)[-_LAST_BYTES:]


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield lines; in the place of one that is too long, the error that answers what it answered, if that is known."""
    head, tail = b"", b""
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.LimitOverrunError as exc:
            piece = await stream.readexactly(exc.consumed)
            head, tail = head or piece[:_ENDS], piece[-_ENDS:]
            continue
        except asyncio.IncompleteReadError as exc:
            if exc.partial and not head:
                yield exc.partial
            return
        if head:
            line = _too_long(head, (tail + line)[-_ENDS:])
            head = b""
        yield line


def _too_long(head: bytes, tail: bytes) -> bytes:
    match = _ID.search(head) or next(reversed(list(_ID.finditer(tail))), None)
    if match is None or _METHOD.search(head):
        return b"(a message that is too long)"
    said = f"the answer is longer than {MAX_LINE_BYTES:,} bytes, and was not read"
    return b'{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s"}}' % (
        match[1],
        TOO_LONG,
        said.encode(),
    )


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """End the process as the protocol says it: close its input, wait, then kill it and all that it started."""
    assert process.stdin is not None
    process.stdin.close()
    exited = asyncio.create_task(process.wait())
    for hard in (False, True):
        if (await asyncio.wait([exited], timeout=_EXIT_S))[0]:
            break
        _kill(process, hard=hard)
    _kill(process, hard=True)  # what it started, and left behind
    exited.cancel()
    for task in tasks:
        task.cancel()
    await asyncio.wait([exited, *tasks], timeout=_EXIT_S)


def _kill(process: asyncio.subprocess.Process, *, hard: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
