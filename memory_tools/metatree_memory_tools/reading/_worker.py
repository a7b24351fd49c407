"""What runs in the process of `own_process`: functions of ours, one after the other, within limits.

Each request is a line of JSON with the function, its arguments, the seconds and bytes of memory that it may take, and
the number of bytes that follow; each answer is one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from importlib import import_module
from typing import Any, BinaryIO, Final

from metatree.errors import MetatreeError
from metatree_memory_tools.reading.own_process import LATE

IDLE_S: Final = 30.0
"""The process ends when it was asked nothing for so long."""
_TOO_MUCH: Final = b'{"raises": ["ReadingFailed", "not read: it takes too much memory"]}\n'
_ROOM: Final = 2_200_000_000
"""What one request may be allowed at most."""


def _answer(place: str, data: bytes, arguments: list[Any]) -> dict[str, Any]:
    module, _, name = place.partition(":")
    try:
        return {"gives": getattr(import_module(module), name)(data, *arguments)}
    except MemoryError:
        raise
    except RecursionError:
        return {"raises": ["ReadingFailed", "not read: it is nested too deeply"]}
    except ValueError as exc:
        return {"raises": ["ValueError", str(exc)]}
    except MetatreeError as exc:
        return {"raises": ["UserError", str(exc)]}
    except Exception as exc:  # whatever a file does to a reader, it is one file
        return {"raises": ["ReadingFailed", f"damaged: {type(exc).__name__} while it was read"]}


def _line(place: str, data: bytes, arguments: list[Any]) -> bytes:
    try:
        return json.dumps(_answer(place, data, arguments)).encode("ascii") + b"\n"
    except MemoryError:
        return _TOO_MUCH


def _allow(memory_bytes: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # A process of a build has less room than that, and gives no more to those that it starts.
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        room = _ROOM if hard == resource.RLIM_INFINITY else min(hard, _ROOM)
        resource.setrlimit(resource.RLIMIT_DATA, (min(memory_bytes, room), room))


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        idle = threading.Timer(IDLE_S, os._exit, (0,))
        idle.daemon = True
        idle.start()
        line = requests.readline()
        idle.cancel()
        if not line:
            return
        place, arguments, limit_s, memory_bytes, size = json.loads(line)
        _allow(memory_bytes)
        late = threading.Timer(limit_s, os._exit, (LATE,))
        late.daemon = True
        data = requests.read(size)
        late.start()
        line = _line(place, data, arguments)
        late.cancel()
        answers.write(line)
        answers.flush()
        if line == _TOO_MUCH:  # the next request is to have all the room that there is
            return


def main() -> None:
    """Serve on standard input and output; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
