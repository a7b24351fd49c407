"""The loop of a process that answers one request after the other, for `own_process`.

Each request is a line of JSON, a list that ends with the number of bytes that follow it; each answer is one line.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from metatree._util.process import resident_bytes

IDLE_S: Final = 30.0
"""The process ends when it was asked nothing for so long."""
KEPT_BYTES: Final = 64_000_000
"""A process that has more memory after an answer ends, since others need it. One that has read a manual has 36 MB."""


def serve(
    answer: Callable[[list[Any], bytes], bytes],
    idle_s: float = IDLE_S,
    kept_bytes: int = KEPT_BYTES,
    last: bytes = b"",
) -> None:
    """Answer requests on standard input until it ends; what libraries print goes to standard error.

    Args:
        answer: gives the line for a request, of what stands before the number, and the bytes.
        idle_s: the process ends when nothing comes for so long.
        kept_bytes: how much memory the process may have when an answer is made, to wait for another request.
        last: a line behind which the process ends in any case.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        while line := _next_line(idle_s):
            *header, size = json.loads(line)
            made = answer(header, sys.stdin.buffer.read(size))
            answers.write(made)
            answers.flush()
            if made == last or resident_bytes() > kept_bytes:
                return


def _next_line(idle_s: float) -> bytes:
    idle = threading.Timer(idle_s, os._exit, (0,))
    idle.daemon = True
    idle.start()
    line = sys.stdin.buffer.readline()
    idle.cancel()
    return line
