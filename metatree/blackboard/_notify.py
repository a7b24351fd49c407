"""The notifier: wakes those who wait for a change of a board, in this process and in others, without polling.

SQLite cannot tell one process that another has written. So a waiter opens a UDP socket on the loopback interface
and enters its port in the board's store; a writer that finds waiters there sends each an empty word after its
commit. The word carries no data, only the waiter's secret, so whoever else sends to the port wakes nobody. Where no
datagram comes through (processes on two machines, or in two network namespaces), the waiter looks by itself once a
second; so does one on a board in PostgreSQL.

What lost: inotify on the write-ahead log (Linux alone, and every write to the tree wakes every waiter), FIFOs and Unix
sockets beside the file (not on Windows, paths of at most 108 bytes, left behind by a killed process), polling
`PRAGMA data_version` (either late or busy).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from metatree.errors import MetatreeError

if TYPE_CHECKING:
    import socket

    from metatree.storage.database import Database

POLL_S: Final = 1.0
"""How often a waiter looks by itself."""
STAY_S: Final = 120.0
"""How long an entry stands that is not renewed: a waiter that was killed is forgotten after it."""
_HOST: Final = "127.0.0.1"


class Notifier:
    """Tells those who wait for one board that it has changed."""

    def __init__(self, store: Database, board: int) -> None:
        self.store = store
        self.board = board

    def notify(self) -> None:
        """Wake all who wait. Nothing is raised: a waiter that is not reached looks by itself."""
        if self.store.shared:
            return
        try:
            waiters = self.store.rows(
                "SELECT port, token FROM board_waiter WHERE board = ? AND expires_at > ?",
                (self.board, time.time()),
            )
        except MetatreeError:
            return
        if not waiters:
            return
        with suppress(OSError), _udp() as sender:
            for port, token in waiters:
                with suppress(OSError):
                    sender.sendto(token.encode(), (_HOST, port))

    def listeners(self) -> int:
        """Return how many listen, in all processes; one that was killed counts for a while."""
        sql = "SELECT count(*) FROM board_waiter WHERE board = ? AND expires_at > ?"
        return int(self.store.value(sql, (self.board, time.time())))

    def listen(self) -> Listener:
        """Begin to listen; a change that is committed after this returns is noticed."""
        return Listener(self)


class Listener:
    """One who waits; a context manager. Used by one thread or task at a time."""

    def __init__(self, notifier: Notifier) -> None:
        import secrets

        self._notifier = notifier
        self._token = secrets.token_hex(8)
        self._socket: socket.socket | None = None
        self._port = 0
        self._renewed = 0.0
        if notifier.store.shared:  # a port of this machine means nothing to writers on others
            return
        try:
            self._socket = _udp()
            self._socket.bind((_HOST, 0))
            self._port = self._socket.getsockname()[1]
            self._renew()
        except OSError:  # a place without a network of its own: it looks by itself
            self.close()
        except BaseException:
            self.close()
            raise

    def _renew(self) -> None:
        now = time.time()
        if self._socket is None or now - self._renewed < STAY_S / 4:
            return
        store = self._notifier.store
        with store.transaction():
            store.execute("DELETE FROM board_waiter WHERE expires_at < ?", (now,))
            store.execute(
                "INSERT INTO board_waiter(port, token, board, expires_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT(port) DO UPDATE SET token = excluded.token, board = excluded.board,"
                " expires_at = excluded.expires_at",
                (self._port, self._token, self._notifier.board, now + STAY_S),
            )
        self._renewed = now

    def wait(self, timeout_s: float) -> None:
        """Wait until the board has changed, or until it is time to look anyway (at most `POLL_S`)."""
        self._renew()
        if self._socket is None:
            time.sleep(min(timeout_s, POLL_S))
            return
        deadline = time.monotonic() + min(timeout_s, POLL_S)
        while (remaining_s := deadline - time.monotonic()) > 0:
            self._socket.settimeout(remaining_s)
            try:
                word = self._socket.recv(64)
            except OSError:  # TimeoutError too
                return
            if word == self._token.encode():
                _drain(self._socket)
                return

    async def wait_async(self, timeout_s: float) -> None:
        """Do what `wait` does, without blocking the event loop."""
        import asyncio

        self._renew()
        if self._socket is None:
            await asyncio.sleep(min(timeout_s, POLL_S))
            return
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, POLL_S)):
                while True:
                    word = await loop.sock_recv(self._socket, 64)
                    if word == self._token.encode():
                        break
                _drain(self._socket)

    def close(self) -> None:
        """Stop listening."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        with suppress(MetatreeError):
            self._notifier.store.execute(
                "DELETE FROM board_waiter WHERE port = ? AND token = ?", (self._port, self._token)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _drain(listening: socket.socket) -> None:
    """Take what has come besides: one look at the board answers all of it."""
    listening.setblocking(False)
    with suppress(OSError):
        while listening.recv(64):
            pass


def _udp() -> socket.socket:
    import socket

    udp_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp_socket.setblocking(False)
    return udp_socket
