"""Notify other servers of one SQLite file when something was written: an empty datagram to a Unix socket of each.

The sockets lie in a folder beside the file. They are a hint and nothing more: who cannot have one, or is not reached,
looks at the file from time to time as well. That is so on Windows, where paths are longer than the 107 bytes that the
name of a socket may have, and between machines or containers that share the file alone. A folder that somebody else
put there, as anybody may in `/tmp`, is left alone: what is in it might be sockets of other programs.

Lost: looking every 5 ms (2 % of a core all the time, and engines wait nearly always, so "only while somebody waits" is
no less); a socket whose bytes say what happened, which would have to be believed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from metatree.errors import UserError
from metatree.storage.store_files import folder_beside

LIST_S: Final = 1.0
"""How long it may take until a server that has just started is notified, too."""
_TRIES: Final = 10
_FOLDER: Final = "-servers"


class ChangeNotifier:
    """Notifies the other servers of one file of changes, and receives their notices.

    Args:
        database: the file.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self.folder = database.with_name(database.name + _FOLDER)
        self._socket: socket.socket | None = None
        self._own: Path | None = None
        self._others: list[Path] = []
        self._listed_at = -LIST_S

    def listen(self, on_change: Callable[[], None]) -> None:
        """Call a function on this event loop when another server wrote, where that can be."""
        own = self.folder / secrets.token_hex(4)
        for _ in range(_TRIES):
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                if not self._is_ours():
                    return
                receiver = self._sender()
                receiver.bind(str(own))
                break
            except FileNotFoundError:  # the last of the others ended in this moment, and took the folder away
                continue
            except (OSError, AttributeError):
                return
        else:
            return
        self._own = own

        def came() -> None:
            with suppress(OSError):
                while True:
                    receiver.recv(1)
            on_change()

        asyncio.get_running_loop().add_reader(receiver, came)

    def tell(self) -> None:
        """Notify the others that something was written."""
        if time.monotonic() - self._listed_at >= LIST_S:
            self._listed_at = time.monotonic()
            self._others = []
            with suppress(OSError, AttributeError):
                if self._is_ours():
                    self._others = [each for each in self.folder.iterdir() if self._is_other(each)]
        for other in self._others[:]:
            try:
                self._sender().sendto(b"", str(other))
            except (OSError, AttributeError) as exc:
                # Who has a full queue will look; what nobody listens at was left by a server that was killed.
                if getattr(exc, "errno", None) != errno.EAGAIN:
                    self._others.remove(other)
                if isinstance(exc, ConnectionRefusedError):
                    with suppress(OSError):
                        if stat.S_ISSOCK(other.lstat().st_mode):
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

    def _is_ours(self) -> bool:
        """Say whether nobody can have put anything into the folder but this user and whose the database is."""
        try:
            status = folder_beside(self._database, _FOLDER).lstat()
        except UserError:
            return False
        return (
            stat.S_ISDIR(status.st_mode)
            and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            and status.st_uid in (os.geteuid(), self._database.stat().st_uid)
        )

    def _is_other(self, file: Path) -> bool:
        """Say whether it is a socket, and no link to one of another program, as a clone or an archive may bring."""
        return file != self._own and stat.S_ISSOCK(file.lstat().st_mode)

    def _sender(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        return self._socket
