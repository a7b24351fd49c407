"""What the web page answers with: rendered templates under a strict content policy, redirects, and errors as pages."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from metatree_memory_tools.text.descriptions import shorten
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.queue.recommendations import PLAIN
from metatree_agents.service.queue.statuses import RUNS, SAID
from metatree_agents.service.web._markdown import Budget, prose
from metatree_agents.service.web.sessions import Session

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing comes from elsewhere, nothing inline runs, nothing is sent elsewhere, and nobody may frame the page."""

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers then send forms with `Origin: null`, and it could not be seen where they come from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
PRIVATE: Final = {**HEADERS, "Cache-Control": "no-store"}

_TICKED: Final = re.compile(r"`([^`\n]{1,300})`")


class PageError(HTTPException):
    """A request that is answered with a page that says what is wrong and where to go on."""

    back = ""
    """The address of the answer that the person came from."""


class NotLoggedIn(Exception):
    """Somebody has to log in first."""


def page(
    request: Request,
    template: str,
    *,
    session: Session | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Return a rendered template."""
    values = {"request": request, "session": session, "budget": Budget(), **values}
    text = environment().get_template(template).render(values)
    # A lone surrogate, which JSON may have in it, is no reason to show nothing.
    body = text.encode("utf-8", "replace")
    return HTMLResponse(body, status, headers={**PRIVATE, **(headers or {})})


def redirect(path: str, anchor: str = "", **given: Any) -> Response:
    """Return a redirect after a form, which the browser follows with a GET."""
    location = link(path, **given) + (f"#{anchor}" if anchor else "")
    return Response(status_code=303, headers={**PRIVATE, "Location": location})


def back_to(path: str) -> Callable[[], Awaitable[Response]]:
    """Return an endpoint that leads to a page: for the address of a form's answer, when it is loaded again."""

    async def back() -> Response:
        return redirect(path)

    return back


def sentence(exc: Exception) -> str:
    """Return what an error says as a sentence of a page.

    Example:
        >>> sentence(ValueError("no user 'Ann'"))
        "No user 'Ann'."
    """
    said = str(exc)
    return f"{said[:1].upper()}{said[1:]}{'' if said.endswith(('.', '?')) else '.'}"


def link(path: str, **given: Any) -> str:
    """Return an address of this server: a path, and parameters that are not None.

    Lost: names in the path. Topics and ids of nodes hold `/`, `#`, `..` and spaces, which browsers and proxies change.
    """
    values = {name: str(value) for name, value in given.items() if value is not None}
    return f"{path}?{urlencode(values, errors='replace')}" if values else path


@cache
def environment() -> Environment:
    """Return the templates. Everything in them is escaped; an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("metatree_agents.service.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(link=link, static=static_link, state_words=SAID, run_words=RUNS)
    made.filters.update(
        prose=_prose,
        ago=ago,
        stamp=stamp,
        counted=lambda number: f"{number:,}",
        short=shorten,
        with_code=_with_code,
        plain=lambda kind: PLAIN.get(kind, kind),
    )
    return made


def _with_code(text: str) -> Markup:
    """Return a message with what stands in backticks as code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))


@pass_context
def _prose(
    context: Context,
    paragraphs: Sequence[str],
    quotes: Sequence[str] = (),
    numbers: Sequence[int] = (),
    anchor: str = "source",
    question: str = "",
    pages: Collection[int] = (),
    verbatim: Collection[int] = (),
) -> Markup:
    budget = context["budget"]
    return prose(
        paragraphs,
        quotes,
        budget,
        numbers=numbers,
        anchor=anchor,
        question=question,
        pages=pages,
        verbatim=verbatim,
    )


def static_file(name: str) -> tuple[bytes, str] | None:
    """Return the bytes and the media type of one of our own files, None when there is no such file."""
    return _static().get(name)


def static_link(name: str) -> str:
    """Return the address of one of our own files, which changes with what is in it."""
    return f"/static/{name}?v={hashlib.sha256(_static()[name][0]).hexdigest()[:12]}"


_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def _static() -> dict[str, tuple[bytes, str]]:
    folder = files("metatree_agents.service.web") / "static"
    return {
        file.name: (file.read_bytes(), _KINDS[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _KINDS
    }


def ago(at: float) -> str:
    """Return how long ago a time is, in words.

    Example:
        >>> ago(time.time() - 7300)
        '2 hours ago'
    """
    seconds = max(0.0, time.time() - at)
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = int(seconds // size)
        if count:
            return f"{count} {name}{'s' * (count != 1)} ago"
    return "just now"
