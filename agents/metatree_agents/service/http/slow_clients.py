"""Bounds on how long a client may take to say what it wants; connections that say nothing are no use to anybody.

uvicorn ends connections that rest between two requests, and lets one that never finishes a request be for ever.

Requests are parsed by h11 even where httptools is installed, which uvicorn would choose: that takes requests without
Host and with unknown codings, and heads of any size.

Lost: httptools, with which a request takes 30 % less CPU. Lost: middleware, which sees a request only when its head
is whole, and leaving it to a proxy, which a service must not need.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import Protocol as _Base
else:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Base

HEAD_S: Final = 15.0
"""How long the head of a request may take, from the opening of the connection or its own first byte."""
BODY_S: Final = 60.0
"""How long the body of a request may take."""


class TimeoutProtocol(_Base):
    """HTTP by h11, with an end to connections whose next request does not begin in time."""

    head_s = HEAD_S
    transport: asyncio.Transport
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(transport)

    def data_received(self, data: bytes) -> None:
        """Take what came, and see whether a request is complete enough to be worked on."""
        super().data_received(data)
        if self._between_requests():
            self._wait(self.transport)
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def _between_requests(self) -> bool:
        cycle = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    def _wait(self, transport: Any) -> None:
        if self._head_timer is None:
            self._head_timer = asyncio.get_running_loop().call_later(self.head_s, self._too_slow, transport)

    def _too_slow(self, transport: asyncio.Transport) -> None:
        self._head_timer = None
        if self._between_requests():
            transport.close()
