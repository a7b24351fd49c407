"""A process of our own that reads what strangers made, within limits of time and memory.

It is started when something is asked, answers one request at a time, and ends when it has nothing to do. Parsers that
are not linear, or not ours, run there: what a file does to one of them takes nothing else along.

Lost: threads (nothing stops native code), a process for each file (0.2 s each), a bound in each parser (the next one
has none, and SQLite asks nobody while it takes a view apart).
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from metatree._util.process import end_process, start_python
from metatree._util.secret_text import masked
from metatree.errors import UserError

MEMORY_BYTES: Final = 395_000_000
"""How much memory may be taken, where the system can limit it; with the build that asks it stays below 500 MB."""
SMALL_BYTES: Final = 64_000
"""Smaller files are read where one is: what is quadratic in them takes a second."""
GRACE_S: Final = 15.0
"""How much longer the process may live, to hand over what it has."""


LATE: Final = 75
"""How the process ends by itself when a request takes too long, also where nobody waits for it any more."""


class ReadingFailed(UserError):
    """What was asked takes too much, or ended the process; the message says so in a few words."""

    def __init__(self, message: str, *, lasting: bool) -> None:
        super().__init__(message)
        self.lasting = lasting
        """Whether the same would fail again."""


class OwnProcess:
    """Runs a program that answers each request on its standard input with one line. One call at a time.

    Args:
        main: gives the code that it runs; asked at each start.
        memory_bytes: how much memory it may take, where the system can limit it.
        grace_s: how much longer than a request may take it may live.
    """

    def __init__(
        self, main: Callable[[], str], memory_bytes: int = MEMORY_BYTES, grace_s: float = GRACE_S
    ) -> None:
        self._main = main
        self._memory_bytes = memory_bytes
        self._grace_s = grace_s
        self.lock = threading.Lock()
        """Held while something is asked."""
        self._owner = os.getpid()
        self.process: subprocess.Popen[bytes] | None = None
        """None when none was started, or it ended."""

    def ask(self, header: Sequence[Any], data: bytes, limit_s: float) -> bytes:
        """Send a line of JSON, which ends with the number of bytes that follow it, and return the line that comes.

        Raises:
            ReadingFailed: nothing came.
        """
        with self.lock:
            for _ in range(2):
                if self._owner != os.getpid():  # a fork would share its pipes
                    self.process, self._owner = None, os.getpid()
                process = self.process or self.start()
                started, late, line = self._exchange(process, header, data, limit_s)
                if line.endswith(b"\n"):
                    return line
                ended = self._ended(process)
                self.close()
                if late or ended == LATE:
                    raise ReadingFailed(
                        f"not read: it takes more than {limit_s + self._grace_s:.0f} seconds", lasting=False
                    )
                if started and ended != 0:
                    raise ReadingFailed(
                        "damaged, or too much: it ended the process that read it", lasting=False
                    )
                # The process had nothing to do for a while, or much memory, and ended as it was asked.
            raise ReadingFailed("not read: no process to read it can be started", lasting=False)

    def _exchange(
        self, process: subprocess.Popen[bytes], header: Sequence[Any], data: bytes, limit_s: float
    ) -> tuple[bool, bool, bytes]:
        """Return whether all was sent, whether it took too long, and what came."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limit_s + self._grace_s, stop)
        timer.daemon = True
        timer.start()
        started, line = False, b""
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps([*header, len(data)]).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
            started = True
            line = process.stdout.readline()
        except OSError:
            pass
        finally:
            timer.cancel()
        return started, late.is_set(), line

    @staticmethod
    def _ended(process: subprocess.Popen[bytes]) -> int | None:
        """Return how a process ended that does not answer any more; 0 when it was for want of anything to do."""
        try:
            return process.wait(5.0)
        except subprocess.TimeoutExpired:
            return None

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process."""
        self.process = start_python(self._main(), str(self._memory_bytes))
        return self.process

    def close(self) -> None:
        """End the process, if there is one; another is started when something is asked."""
        process, self.process = self.process, None
        if process is None or self._owner != os.getpid():
            return
        end_process(process)


_shared = OwnProcess(lambda: "from metatree_memory_tools.reading._worker import main; main()")
atexit.register(_shared.close)


def end_reader() -> None:
    """End the process that `read_apart` shares, with all memory that it took; the next call starts another."""
    with _shared.lock:
        _shared.close()


def read_apart(
    function: Callable[..., Any],
    data: bytes,
    *arguments: Any,
    limit_s: float,
    memory_bytes: int = MEMORY_BYTES,
) -> Any:
    """Return what a function gives for some bytes, called in the process that this one shares for it.

    Args:
        function: of a module, called with the bytes and the arguments; it gives JSON, in which lists come for tuples.
        data: what strangers made.
        arguments: JSON values.
        limit_s: seconds that it may take.
        memory_bytes: how much memory may be taken for it.

    Raises:
        ReadingFailed: it takes too much, or ended the process.
        UserError: the function raised it.
        ValueError: the same.
    """
    place = f"{function.__module__}:{function.__qualname__}"
    header = [place, list(arguments), limit_s, memory_bytes]
    answer = json.loads(_shared.ask(header, data, limit_s))
    if "gives" in answer:
        return answer["gives"]
    kind, message = answer["raises"][0], masked(answer["raises"][1])[0]  # an error repeats what was read
    if kind == "ReadingFailed":
        raise ReadingFailed(message, lasting=True)
    raise ValueError(message) if kind == "ValueError" else UserError(message)


def allowance(data: bytes, times: int) -> int:
    """Return how much memory may be taken for a file: what all may, or some times its size if that is more."""
    return max(MEMORY_BYTES, times * len(data))
