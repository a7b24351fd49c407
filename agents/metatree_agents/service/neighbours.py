"""Other servers of one SQLite file are told when something was written: an empty datagram to a Unix socket of each.

The sockets lie in a folder beside the file. They are a hint and nothing more: who cannot have one, or is not reached,
looks at the file from time to time as well. That is so on Windows, where paths are longer than the 107 bytes that the
name of a socket may have, and between machines or containers that share the file alone.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

LIST_S: Final = 1.0
"""How long it may take until a server that has just started is told, too."""


class Neighbours:
    """The servers of one file, as one of them sees the others.

    Args:
        database: the file.
    """

    def __init__(self, database: Path) -> None:
        self.folder = database.with_name(database.name + "-servers")
        self._socket: socket.socket | None = None
        self._own: Path | None = None
        self._others: list[Path] = []
        self._listed_at = -LIST_S

    def listen(self, told: Callable[[], None]) -> None:
        """Call a function on this event loop when another server wrote, where that can be."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            own = self.folder / secrets.token_hex(4)
            found = self._sender()
            found.bind(str(own))
        except (OSError, AttributeError):
            return
        self._own = own

        def came() -> None:
            with suppress(OSError):
                while True:
                    found.recv(1)
            told()

        asyncio.get_running_loop().add_reader(found, came)

    def tell(self) -> None:
        """Tell the others that something was written."""
        if time.monotonic() - self._listed_at >= LIST_S:
            self._listed_at = time.monotonic()
            with suppress(OSError):
                self._others = []
                self._others = [each for each in self.folder.iterdir() if each != self._own]
        for other in self._others[:]:
            try:
                self._sender().sendto(b"", str(other))
            except (OSError, AttributeError) as exc:
                # Who has a full queue will look; what nobody listens at was left by a server that was killed.
                if getattr(exc, "errno", None) != errno.EAGAIN:
                    self._others.remove(other)
                if isinstance(exc, ConnectionRefusedError) and other.is_socket():
                    with suppress(OSError):
                        other.unlink()

    def close(self) -> None:
        """Take the own socket away, and the folder with the last one."""
        if self._socket is not None:
            if self._own is not None:
                with suppress(RuntimeError):
                    asyncio.get_running_loop().remove_reader(self._socket)
                with suppress(OSError):
                    self._own.unlink()
                    self.folder.rmdir()
            self._socket.close()
            self._socket = None

    def _sender(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        return self._socket
