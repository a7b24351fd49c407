"""Logging in by a secret or a code that works once, and out, here or everywhere."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.settings import Service
from metatree_agents.service.web._guard import (
    Entered,
    Form,
    entered,
    posted,
    session_of,
    sessions_of,
    way_back,
    with_cookie,
    without_cookie,
)
from metatree_agents.service.web._other_logins import let_in
from metatree_agents.service.web._replies import page, redirect
from metatree_agents.service.web._state import Web
from metatree_agents.service.web.sessions import PEOPLE

router = APIRouter()


@router.get("/")
async def home(request: Request) -> Response:
    """Go to the topics."""
    await entered(request)
    return redirect("/topics")


@router.get("/login")
async def login(request: Request) -> Response:
    """Ask who it is."""
    target = way_back(request.query_params.get("next", "/"))
    if await session_of(request) is not None:
        return redirect(target)
    other = Service.of(request).settings.other_logins
    if (named := other.named_by_proxy(request.scope)) is not None:
        return await let_in(request, named, target)
    return page(
        request, "login.html", next=target, wrong="", name="", by_code=False, provider=bool(other.issuer)
    )


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session; those who guess have to wait longer and longer."""
    given, throttle = await posted(request), Web.of(request).throttle
    name, code, target = (
        given.get("name", "").strip()[:64],
        given.get("code", "").strip().rpartition("#code=")[2],  # some paste the whole link
        given.get("next", "/"),
    )
    address = f"address {request.client.host if request.client else ''}"
    keys = (address,) if code else (address, f"name {name}")
    wait_s = throttle.wait_s(*keys)
    if wait_s > 0:
        seconds = int(wait_s) + 1
        message = f"Too many attempts. Try again in {seconds} second{'s' * (seconds != 1)}."
        return _login_form(request, given, message, 429, {"Retry-After": str(seconds)})
    who = await _who(request, name, given.get("secret", ""), code)
    if who is None:
        throttle.failed(*keys)
        wrong = (
            "This code is wrong, was used, or is older than 15 minutes." if code else "Wrong name or secret."
        )
        return _login_form(request, given, wrong, 401)
    throttle.succeeded(f"name {who.name}")
    if who.role not in PEOPLE:
        return _login_form(request, given, f"{who.name} is an engine, and this page is for people.", 403)
    before = await session_of(request)
    if before is not None:
        await sessions_of(request).end(before)
    cookie = await sessions_of(request).begin(who.name)
    await Service.of(request).users.seen(who.name)
    return with_cookie(request, redirect(way_back(target)), cookie)


@router.post("/logout")
async def log_out(request: Request, session: Entered, given: Form) -> Response:
    """End this session, or all sessions of this user."""
    if given.get("everywhere"):
        await sessions_of(request).end_all(session.name)
    else:
        await sessions_of(request).end(session)
    return without_cookie(request, redirect("/login"))


async def _who(request: Request, name: str, secret: str, code: str) -> Caller | None:
    if code:
        return await sessions_of(request).take_code(code)
    return await Service.of(request).users.right_secret(name, secret)


def _login_form(
    request: Request, given: dict[str, str], wrong: str, status: int, headers: dict[str, str] | None = None
) -> Response:
    """Show the form once more, without what was secret in it."""
    return page(
        request,
        "login.html",
        status=status,
        headers=headers,
        next=way_back(given.get("next", "/")),
        wrong=wrong,
        name=given.get("name", "")[:64],
        by_code=bool(given.get("code")),
        provider=bool(Service.of(request).settings.other_logins.issuer),
    )
