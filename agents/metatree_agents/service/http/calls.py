"""What every route asks first: the parameters of a request wherever they are, and who calls.

Lost: parameters, bodies and dependencies of FastAPI's own. The documented wire has a `+` that is no space, parameters
in the body of a GET, bodies of any content type, 400 for what is no JSON, and proofs that are looked at before anything
else is said; FastAPI decodes and refuses differently in each of these. Beside the 34 us of a route that is found by its
path (`path_router`), a dependency takes 50 us more, and typed parameters with a body 95 us.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final, TypeVar
from urllib.parse import unquote

from fastapi import HTTPException, Request
from pydantic import ValidationError

from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http.bodies import MAX_NUMBER, Body
from metatree_agents.service.settings import Service

B = TypeVar("B", bound=Body)
_TURNS: Final = 6


def refused(status: int, detail: str) -> HTTPException:
    """Return the error that a request is answered with."""
    return HTTPException(status, detail)


def parameters_of(request: Request) -> dict[str, str]:
    """Return the parameters in the address of a request.

    A `+` is itself, not a space, since naive clients send topics as they are; a client that means a space by it is
    understood where the parameter is used.
    """
    values: dict[str, str] = {}
    for pair in request.scope["query_string"].decode("latin-1").split("&"):
        name, _, value = pair.partition("=")
        name, value = unquote(name), unquote(value)
        _require_text(name, value)
        if values.setdefault(name, value) != value:
            raise refused(400, f"{name[:40]} is given twice with different values")
    return values


def _require_text(name: str, value: str) -> None:
    """Raise 400 for what no database keeps as text: NUL, and halves of characters, which JSON can spell."""
    text = name + value
    if "\0" in text or (not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)):
        raise refused(400, "a parameter has a NUL or half a character in it")


async def parameters(request: Request) -> dict[str, str]:
    """Return the parameters of a request without a body of its own: old clients send them in one, as JSON."""
    values = parameters_of(request)
    raw = await request.body()
    if not raw.strip():
        return values
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise refused(400, "the body is no JSON") from None
    if not isinstance(body, dict):
        raise refused(400, "the body is no JSON object")
    for name, value in body.items():
        _require_text(name, str(value))
        first = values.setdefault(name, str(value))
        if str(value) not in (first, first.replace("+", " ")):
            raise refused(400, f"{name[:40]} is one thing in the address and another in the body")
    return values


async def read(request: Request, body: type[B]) -> B:
    """Return the body of a request: 400 when it is no JSON, 422 when a value is wrong."""
    try:
        model = body.model_validate_json(await request.body())
        for name, value in model:
            if isinstance(value, str) and "\0" in value:  # PostgreSQL cannot keep it
                raise refused(422, f"{name}: holds a zero character")
        return model
    except ValidationError as exc:
        wrong = exc.errors(include_url=False, include_input=False, include_context=False)
    if wrong[0]["type"] == "json_invalid":
        raise refused(400, "the body is no JSON")
    messages = (f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in wrong)
    raise refused(422, "; ".join(messages)[:1000])


async def admitted(request: Request, *roles: str) -> tuple[Service, Caller, dict[str, str]]:
    """Return the service, who calls it, and with which parameters.

    Raises:
        HTTPException: 401 without a right and fresh proof, or an API key; 403 for one who may not use this route;
            429 for one who calls too often.
    """
    service = Service.of(request)
    given = parameters_of(request) if request.method == "POST" else await parameters(request)
    who = await authenticate(request, given)
    if who is None:
        by_proof = "Hash" in given or ("User" in given and not key_in(request))
        if by_proof:
            raise refused(401, "wrong User, Nonce or Hash, or the Nonce was used before")
        raise refused(401, unauthorized(request))
    if roles and who.role not in roles:
        raise refused(403, f"{who.name} is a {who.role} and may not use this route")
    return service, who, given


async def submitted(request: Request, body: type[B], *roles: str) -> tuple[Service, Caller, B]:
    """Return the service, who calls it, and the body of the request; raises as `admitted` and `read` do."""
    service, who, _ = await admitted(request, *roles)
    return service, who, await read(request, body)


async def authenticate(request: Request, given: Mapping[str, str]) -> Caller | None:
    """Return who calls, by a proof or else by an API key; None when neither is right. Whoever it is, is counted.

    Args:
        given: the parameters in which a proof is; none where only keys are taken.

    Raises:
        HTTPException: 429 for one who calls too often.
    """
    service, key = Service.of(request), key_in(request)
    if key and "Hash" not in given:
        who = await service.keys.verified(key)
    elif given:
        who = await service.users.verified(
            given.get("User", ""), given.get("Nonce", ""), given.get("Hash", "")
        )
    else:
        who = None
    if who is not None:
        service.limits.admit(request, who)
    return who


def unauthorized(request: Request) -> str:
    """Return what to say of a request whose API key is wrong or missing: where keys come from."""
    wrong = "wrong API key" if key_in(request) else "no API key: send `Authorization: Bearer mtk-…`"
    return f"{wrong}; the page makes one at *API keys*, and `metatree service keys add NAME` on the service's machine"


def key_in(request: Request) -> str:
    """Return the API key that a request carries; empty for none."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else ""


async def still_authorized(service: Service, who: Caller) -> bool:
    """Say whether one who called before, and waits, is still a user with this role and secret."""
    row = await service.database.row("SELECT role, secret FROM service_user WHERE name = ?", who.name)
    return row is not None and who.is_still(*row)


def required(given: dict[str, str], name: str) -> str:
    """Return a parameter, or 422 when it is missing."""
    value = given.get(name, "")
    if not value:
        raise refused(422, f"{name} is missing")
    return value


def number(given: dict[str, str], name: str, *, least: int = 1, default: int | None = None) -> int:
    """Return a parameter that is a whole number from `least`, or 422; a missing one is `default`."""
    if default is not None and name not in given:
        return default
    value = required(given, name)
    # Python reads no number of more than some thousand digits.
    if not (value.isascii() and value.isdigit() and len(value) < 20 and least <= int(value) <= MAX_NUMBER):
        raise refused(422, f"{name} must be a whole number from {least} to 2^53, not {value[:40]!r}")
    return int(value)


def disconnected(request: Request) -> asyncio.Future[None]:
    """Return a future that is done when the client has gone away, or the server is about to."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    left = asyncio.ensure_future(watch())
    request.app.state.service.waiting.until_end(left)
    return left


async def drain_events() -> None:
    """Let the event loop read what has come over its connections: a client that has gone is known to be, then.

    It reads the end of a connection one turn after the request before it, and tells `disconnected` some turns later.
    Lost: claiming and handing back, which are two more transactions.
    """
    for _ in range(_TURNS):
        await asyncio.sleep(0)
