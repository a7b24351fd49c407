"""Logging in by what a proxy or a provider of OpenID Connect says of somebody.

Authlib does the protocol: the code flow with PKCE, state and nonce, discovery, and the signature, issuer, audience and
times of the token. Between its two requests what it needs is in a cookie of the browser alone.
"""

from __future__ import annotations

import json
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree.errors import UserError
from metatree_agents.service.accounts.former_users import NameWasUsed
from metatree_agents.service.accounts.other_logins import OtherLogins
from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.settings import Service
from metatree_agents.service.web._guard import cookie_name, session_of, sessions_of, way_back, with_cookie
from metatree_agents.service.web._replies import PageError, redirect
from metatree_agents.service.web.sessions import PEOPLE

router = APIRouter()
_SCOPE: Final = "openid profile email"
_STATE_S: Final = 600
_log = logging.getLogger("metatree.service")


async def let_in(request: Request, name: str, target: str) -> Response:
    """Begin a session for somebody whom a proxy or a provider names.

    Raises:
        PageError: nobody has this name here, or it is an engine's.
    """
    who = await _known(Service.of(request), name)
    before = await session_of(request)
    if before is not None:
        await sessions_of(request).end(before)
    cookie = await sessions_of(request).begin(who.name)
    await Service.of(request).users.seen(who.name)
    return with_cookie(request, redirect(way_back(target)), cookie)


async def _known(service: Service, name: str) -> Caller:
    row = await service.database.row("SELECT role FROM service_user WHERE name = ?", name)
    if row is None and service.settings.other_logins.adds:
        try:
            await service.users.add(name, "user")
        except NameWasUsed:
            said = f"Somebody called {name} was here before: an administrator may add you."
            raise PageError(403, said) from None
        except UserError as exc:
            raise PageError(403, f"{str(exc)[:1].upper()}{str(exc)[1:]}.") from None
        return Caller(name, "user")
    if row is None:
        raise PageError(403, f"There is no user {name[:64]} here: an administrator may add one.")
    if row[0] not in PEOPLE:
        raise PageError(403, f"{name} is an engine, and this page is for people.")
    return Caller(name, row[0])


@lru_cache(maxsize=8)
def _provider(given: OtherLogins) -> Any:
    """Return Authlib's client of a provider, which keeps what it has read of it."""
    from authlib.integrations.starlette_client import OAuth

    return OAuth().register(
        "provider",
        client_id=given.client_id,
        client_secret=given.client_secret,
        server_metadata_url=f"{given.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={"scope": _SCOPE, "code_challenge_method": "S256"},
    )


def _offered(request: Request) -> OtherLogins:
    given = Service.of(request).settings.other_logins
    if not given.issuer:
        raise PageError(404, "There is no such page.")
    return given


def _state_cookie(request: Request) -> str:
    return f"{cookie_name(request)}-oidc"


@router.get("/login/oidc")
async def begin(request: Request, next: str = "/") -> Response:  # noqa: A002
    """Send somebody to the provider, to come back from there."""
    given = _offered(request)
    request.scope["session"] = state = {"next": way_back(next)}
    back = f"{request.url.scheme}://{request.url.netloc}/login/oidc/back"
    try:
        response: Response = await _provider(given).authorize_redirect(request, back)
    except Exception as exc:  # whatever Authlib and its client raise: the provider is away, or says nonsense
        raise _failed(exc) from None
    response.headers["Cache-Control"] = "no-store"
    response.set_cookie(
        _state_cookie(request),
        urlsafe_b64encode(json.dumps(state).encode()).decode(),
        max_age=_STATE_S,
        path="/",
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


@router.get("/login/oidc/back")
async def come_back(request: Request) -> Response:
    """Take what the provider says of who somebody is."""
    given = _offered(request)
    try:
        state = json.loads(urlsafe_b64decode(request.cookies.get(_state_cookie(request), "")))
        target = str(state["next"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PageError(400, "This log-in was begun elsewhere, or too long ago: begin it again.") from None
    request.scope["session"] = state
    try:
        token = await _provider(given).authorize_access_token(request)
        if token["userinfo"]["iss"].rstrip("/") != given.issuer.rstrip("/"):
            raise ValueError(f"the token is of {token['userinfo']['iss']!r}")
        claims = dict(token["userinfo"])
        if given.claim not in claims:
            more = dict(await _provider(given).userinfo(token=token))
            if more.get("sub") == claims["sub"]:  # OpenID Connect Core, 5.3.2
                claims |= more
    except Exception as exc:  # as above; nobody is let in
        raise _failed(exc) from None
    name = claims.get(given.claim)
    if not isinstance(name, str) or (given.claim == "email" and claims.get("email_verified") is not True):
        raise PageError(
            403, f"The provider does not say who you are: {given.claim} is missing or not verified."
        )
    response = await let_in(request, name, target)
    response.delete_cookie(_state_cookie(request), path="/", secure=request.url.scheme == "https")
    return response


def _failed(exc: Exception) -> PageError:
    _log.warning("log-in by the provider failed: %s: %s", type(exc).__name__, str(exc)[:200])
    return PageError(502, "The log-in by the provider did not work: try again, or log in with a secret.")
