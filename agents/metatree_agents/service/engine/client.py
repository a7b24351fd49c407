"""A client of the wire format, for engines: fresh proofs, one pool of connections, patience with a server away.

That the service is away is logged here and not by those who call: once after three seconds, and once when it answers
again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from metatree.errors import MetatreeError, TransientError, UserError
from metatree_agents.service.accounts.keys import PREFIX
from metatree_agents.service.accounts.nonces import WINDOW_S, timed_nonce
from metatree_agents.service.accounts.users import proof
from metatree_agents.service.database.identity import Identity

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

ANSWER_S = 130.0
MOST_BYTES = 100_000_000
"""Of an answer, unpacked, that are taken; files have a bound of their own."""
"""How long a call may take; the server answers a waiting engine before."""
WONDER_S = 3.0
"""After how long without an answer a warning is logged; shorter times are usual."""
_log = logging.getLogger("metatree.engine")


class ServiceAway(TransientError):
    """The service cannot be reached, or is busy; its client says so in the log, and when it answers again."""


class ServiceRefused(MetatreeError):
    """The service said no; `status` says how."""

    status: int

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message, status=status)


class WrongCredentials(UserError):
    """The service does not accept this user with this secret."""


class ServiceClient:
    """Calls a query service as one user; an async context manager.

    Args:
        url: the service, such as `http://127.0.0.1:8080`.
        name: the user.
        secret: its secret, which is never sent; or an API key of it, which is sent as it is with each call.
        transport: what sends requests instead of the network.
    """

    def __init__(
        self, url: str, name: str, secret: str, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UserError(f"{url!r} is no address of a service: give one such as http://127.0.0.1:8080")
        self.url = url.rstrip("/")
        self.name = name
        self._secret = secret
        self._ahead_s = 0.0
        """What the service's clock is ahead of this machine's, when they differ by more than proofs may be old."""
        self._transport = transport
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.identity: Identity | None = None
        """What the database of the service is called; None until somebody asked."""
        self._away_since: float | None = None
        self._warned = False
        """Whether the log says that the service is away."""

    async def __aenter__(self) -> Self:
        import httpx2

        self._loop = asyncio.get_running_loop()
        self._client = httpx2.AsyncClient(base_url=self.url, timeout=ANSWER_S, transport=self._transport)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def call(self, method: str, route: str, *, body: Any = None, **given: Any) -> Any:
        """Make one call and return the JSON of the answer.

        Raises:
            ServiceAway: the service cannot be reached, or is busy.
            WrongCredentials: the service does not accept name and secret.
            ServiceRefused: any other answer than 200, or one that is not what the route answers.
        """
        from metatree_agents.service.engine._answers import check_answer

        answer = await self._answer(method, route, body, given)
        try:
            said = answer.json()
        except (ValueError, RecursionError):
            raise ServiceRefused(f"{self.url} is no query service", status=answer.status_code) from None
        try:
            check_answer(route, said)
        except ValueError as exc:
            raise ServiceRefused(
                f"{self.url} is no query service: it answers {route} with something else ({exc})",
                status=answer.status_code,
            ) from None
        return said

    def call_from_thread(self, method: str, route: str, *, body: Any = None, timeout_s: float) -> Any:
        """Do what `call` does, from another thread than that of the loop, which may be blocked meanwhile.

        With a transport of its own the client is inside the server's process, on the server's loop, and waits for that.
        """
        import httpx2

        if self._transport is not None:
            assert self._loop is not None, "use it in `async with`"
            calling = asyncio.run_coroutine_threadsafe(self.call(method, route, body=body), self._loop)
            try:
                return calling.result(timeout_s)
            except TimeoutError:
                calling.cancel()
                raise ServiceAway(f"the service at {self.url} did not answer") from None
        with httpx2.Client(base_url=self.url, timeout=timeout_s) as client:
            proven, headers = self._proof()
            data = bytearray()
            try:
                with client.stream(
                    method, f"/api/{route}", params=proven, json=body, headers=headers
                ) as answer:
                    for chunk in answer.iter_bytes():
                        data += chunk
                        self._check_size(data, answer, route, MOST_BYTES)
                answer = httpx2.Response(answer.status_code, content=bytes(data))
            except httpx2.TransportError as exc:
                raise ServiceAway(f"the service at {self.url} cannot be reached: {exc}") from exc
        if answer.status_code == 429 or answer.status_code >= 500:
            raise ServiceAway(f"the service at {self.url} is busy ({answer.status_code})")
        return self._accepted(answer, route).json()

    async def fetch(self, route: str, *, most: int, **given: Any) -> tuple[bytes, bool]:
        """Make one call and return the bytes of the answer, and whether there are more; raises as `call` does.

        Args:
            most: bytes of the answer that are taken; more is refused before it fills the memory.
        """
        answer = await self._answer("GET", route, None, given, most=most)
        return answer.content, answer.headers.get("X-More") == "1"

    async def _answer(
        self, method: str, route: str, body: Any, given: dict[str, Any], *, most: int = MOST_BYTES
    ) -> httpx2.Response:
        import httpx2

        assert self._client is not None, "use it in `async with`"
        for _ in range(2):
            proven, headers = self._proof()
            try:
                async with self._client.stream(
                    method, f"/api/{route}", params={**proven, **given}, json=body, headers=headers
                ) as answer:
                    answer = await self._bounded(answer, route, most)
            except httpx2.TransportError as exc:
                raise self._away(
                    f"cannot be reached: {exc or type(exc).__name__}; see whether it runs there"
                ) from exc
            if answer.status_code != 401 or not self._set_clock(answer.headers.get("Date", "")):
                break
        if answer.status_code == 429 or answer.status_code >= 500:
            raise self._away(f"is busy ({answer.status_code})")
        self._back()
        return self._accepted(answer, route)

    async def _bounded(self, answer: httpx2.Response, route: str, most: int) -> httpx2.Response:
        """Return an answer that is read to its end, as what it says unpacked."""
        import httpx2

        data = bytearray()
        async for chunk in answer.aiter_bytes():
            data += chunk
            self._check_size(data, answer, route, most)
        headers = {name: answer.headers[name] for name in ("Date", "X-More") if name in answer.headers}
        return httpx2.Response(answer.status_code, headers=headers, content=bytes(data))

    def _check_size(self, data: bytearray, answer: httpx2.Response, route: str, most: int) -> None:
        if len(data) > most:
            raise ServiceRefused(
                f"{route}: {self.url} answered with more than {most:,} bytes", status=answer.status_code
            )

    def _accepted(self, answer: httpx2.Response, route: str) -> httpx2.Response:
        if answer.status_code == 401:
            raise WrongCredentials(
                f"the service at {self.url} does not accept {self.name!r} with this secret; `metatree service users add"
                f" {self.name} --role engine` on its machine prints a new one, and ends the one before (an engine needs"
                " a name of its own: a person of this name could not log in any more)"
            )
        if answer.status_code != 200:
            try:
                body = answer.json()
            except ValueError:
                raise ServiceRefused(f"{self.url} is no query service", status=answer.status_code) from None
            detail = body.get("detail", "") if isinstance(body, dict) else ""
            raise ServiceRefused(f"{route}: {detail}", status=answer.status_code)
        return answer

    def _proof(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the parameters and the headers that prove who calls."""
        if self._secret.startswith(PREFIX):
            return {}, {"Authorization": f"Bearer {self._secret}"}
        nonce = timed_nonce(time.time() + self._ahead_s)
        return {"User": self.name, "Nonce": nonce, "Hash": proof(self.name, nonce, self._secret)}, {}

    def _set_clock(self, date: str) -> bool:
        """Go by the clock of the service when this machine's is far from it; return whether it was."""
        try:
            ahead_s = parsedate_to_datetime(date).timestamp() - time.time()
        except ValueError:
            return False
        was_far = abs(ahead_s - self._ahead_s) > WINDOW_S / 2
        if was_far:
            self._ahead_s = ahead_s
        return was_far

    def _away(self, why: str) -> ServiceAway:
        """Return the error of a call that may work later; all calls together say once in the log what is wrong."""
        message, now = f"the service at {self.url} {why}", time.monotonic()
        self._away_since = now if self._away_since is None else self._away_since
        if not self._warned and now - self._away_since >= WONDER_S:
            self._warned = True
            _log.warning("%s; trying again", message, extra={"each_time": True})
        return ServiceAway(message)

    def _back(self) -> None:
        if self._warned:
            _log.warning("the service at %s answers again", self.url, extra={"each_time": True})
        self._away_since, self._warned = None, False


async def patiently(client: ServiceClient, method: str, route: str, *, body: Any = None, **given: Any) -> Any:
    """Make a call that must not be lost: try again, ever slower, while the service cannot be reached."""
    return await with_patience(lambda: client.call(method, route, body=body, **given))


async def with_patience(call: Callable[[], Awaitable[T]]) -> T:
    """Await a call that must not be lost: make it again, ever slower, while the service cannot be reached."""
    wait_s = 0.2
    while True:
        try:
            return await call()
        except TransientError:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, 10.0)
