"""What runs in the process of `own_process`: functions of ours, one after the other, within limits.

Each request has the function, its arguments, and the seconds and bytes of memory that it may take; each answer is JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from importlib import import_module
from typing import Any, Final

from metatree.errors import MetatreeError
from metatree_memory_tools.reading.own_process import LATE
from metatree_memory_tools.reading.serving import serve

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


def _answered(header: list[Any], data: bytes) -> bytes:
    place, arguments, limit_s, memory_bytes = header
    _allow(memory_bytes)
    late = threading.Timer(limit_s, os._exit, (LATE,))
    late.daemon = True
    late.start()
    line = _line(place, data, arguments)
    late.cancel()
    return line


def main() -> None:
    """Serve on standard input and output."""
    serve(_answered, last=_TOO_MUCH)  # the next request is to have all the room that there is


if __name__ == "__main__":
    main()
