"""Who sends a request to the web page, and whether it comes from the page itself."""

from __future__ import annotations

import hmac
from contextlib import suppress
from typing import Annotated, Final
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Query
from pydantic import BeforeValidator
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from metatree.errors import TransientError
from metatree_agents.service.settings import Service
from metatree_agents.service.web._replies import NotLoggedIn, PageError
from metatree_agents.service.web.sessions import SESSION_S, Session, Sessions

MAX_FIELDS: Final = 50


def cookie_name(request: Request) -> str:
    """Return what the cookie is called: browsers keep one for all ports of a machine, so the port is in its name.

    `__Host-` has browsers refuse one that was set for other machines of a domain, or without encryption.
    """
    if request.url.scheme == "https":
        return "__Host-metatree"
    return f"metatree-{request.url.port or 80}"


def with_cookie(request: Request, response: Response, cookie: str) -> Response:
    """Give the browser the cookie of a session.

    Lost: `SameSite=Strict`, with which a link to a thread in a mail looks logged out. A GET changes nothing, also with
    a one-time code, which is behind a `#` and is sent by a button: previews of links and prefetching use none up.
    """
    response.set_cookie(
        cookie_name(request),
        cookie,
        max_age=int(SESSION_S),
        path="/",
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


def without_cookie(request: Request, response: Response) -> Response:
    """Have the browser forget the cookie."""
    response.delete_cookie(
        cookie_name(request), path="/", httponly=True, samesite="lax", secure=request.url.scheme == "https"
    )
    return response


async def session_of(request: Request) -> Session | None:
    """Return the session of a request, None when nobody is logged in."""
    cookie = request.cookies.get(cookie_name(request))
    session = None if not cookie else await sessions_of(request).find(cookie)
    named = Service.of(request).settings.other_logins.named_by_proxy(request.scope)
    # Whom the proxy lets in now goes before who was here with this browser.
    return session if named is None or session is None or session.name == named else None


async def _service(request: Request) -> Service:
    return Service.of(request)


Here = Annotated[Service, Depends(_service)]
"""The service that a request came to, as a parameter of an endpoint."""


def number_of(text: str) -> int:
    """Return a number of an address or a form, 0 when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


Number = Annotated[int, BeforeValidator(number_of)]
"""A number in the address, as a parameter of an endpoint."""
Id = Annotated[str, Query(alias="id")]
"""The id of a node, or of a run, in the address."""


async def entered(request: Request) -> Session:
    """Return the session of a request.

    Raises:
        NotLoggedIn: there is none.
        PageError: this person asks too often, or an address has a NUL in it, which no database keeps.
    """
    session = await session_of(request)
    if session is None:
        raise NotLoggedIn
    try:
        Service.of(request).limits.admit(request, session.caller)
    except HTTPException as exc:
        raise PageError(
            exc.status_code, "That was a lot at once: wait a moment, and try again.", exc.headers
        ) from None
    with suppress(TransientError):  # the next page notes it then
        await Service.of(request).users.seen(session.name)
    if b"%00" in request.scope["query_string"]:
        raise PageError(400, "This address cannot be read.")
    return session


Entered = Annotated[Session, Depends(entered)]
"""What an endpoint has as a parameter that is for those who are logged in."""


async def posted(request: Request, session: Session | None = None) -> dict[str, str]:
    """Return the fields of a form that was sent from one of our own pages.

    Lost: FastAPI's own forms, which need one more package, and take a form with a file in it, too.

    Args:
        session: whose form it must be; None for the log-in, which belongs to nobody yet.

    Raises:
        PageError: it comes from elsewhere, is not this session's, or is no form.
    """
    if not from_here(request):
        raise PageError(403, "This form came from another site, so nothing was done.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise PageError(415, "This is no form of a page.")
    try:
        text = (await request.body()).decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise PageError(400, "This form cannot be read.") from None
    if "\0" in text or "%00" in text:
        raise PageError(400, "This form cannot be read.")
    # Browsers send the ends of lines of a text as two characters.
    values = {name: value.replace("\r\n", "\n") for name, value in pairs}
    if session is not None and not hmac.compare_digest(
        values.get("csrf", "").encode(), session.csrf.encode()
    ):
        raise PageError(403, "This form is of an earlier log-in: open the page again and send it once more.")
    return values


async def _form(request: Request, session: Entered) -> dict[str, str]:
    return await posted(request, session)


Form = Annotated[dict[str, str], Depends(_form)]
"""The fields of a form of one's own session, as a parameter of an endpoint."""


def from_here(request: Request) -> bool:
    """Say whether a form was sent from a page of this server, as the browser tells it; a page cannot forge that.

    A form that tells nothing of where it comes from is refused: every browser does.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return bool(origin) and urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def way_back(path: str) -> str:
    """Return where somebody goes after the log-in: only ever a path of this server."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe and "\\" not in path else "/"


def sessions_of(request: Request) -> Sessions:
    """Return the sessions of the service that a request came to."""
    return Sessions(Service.of(request).database)
