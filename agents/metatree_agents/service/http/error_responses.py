"""What an error looks like on the wire: `{"detail": …}`, and OpenAI's form below `/v1`, whoever finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from metatree._util.secret_text import shapes_masked

_TYPES: Final[Mapping[int, str]] = {429: "rate_limit_error"}
_CODES: Final[Mapping[int, str]] = {
    401: "invalid_api_key",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}


def openai_error(
    status: int, message: str, *, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body = {"message": message, "type": kind, "param": param, "code": code or _CODES.get(status)}
    return {"error": body}


def error_response(
    scope: Scope,
    status: int,
    message: str,
    *,
    headers: Mapping[str, str] | None = None,
    code: str | None = None,
    param: str | None = None,
) -> Response:
    """Return the response of an error, in the form of the part of the service that the request came to."""
    message = shapes_masked(message)  # it may repeat a file that is out of form
    if scope["path"].startswith("/v1/"):
        return JSONResponse(openai_error(status, message, code=code, param=param), status, headers)
    return JSONResponse({"detail": message}, status, headers)
