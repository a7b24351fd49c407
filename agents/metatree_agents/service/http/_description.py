"""What `/openapi.json` says of the routes that read their requests by themselves (`calls`)."""

from __future__ import annotations

from typing import Any, Final

from metatree_agents.service.http.bodies import MAX_NUMBER, Body, Problem, inlined

_MEANING: Final = {
    400: "Malformed JSON, or a parameter given twice",
    401: "Wrong credentials, or a nonce that was used",
    403: "Wrong role, or not yours",
    404: "Nothing there",
    408: "The request took more than a minute to come in",
    409: "Another answer was given, or it is not clear to which query this one belongs",
    413: "More than 2,000,000 bytes",
    422: "An invalid value",
    429: "Too many requests; Retry-After says when to come again",
    503: "The database is away for a moment; Retry-After says when to come again",
}
_ALWAYS: Final = (400, 401, 403, 408, 413, 429, 503)
_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "Seq": {"type": "integer", "minimum": 1, "maximum": MAX_NUMBER},
    "After": {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER, "default": 0},
    "Part": {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER, "default": 0},
    "Digest": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "Of": {"type": "string", "default": ""},
    "Trees": {"type": "string", "default": "", "description": "Names, parted by commas"},
    "Tree": {"type": "string", "default": ""},
}
KEY: Final = "API key"
"""What the way to call with an API key is called; it stands for the three parameters of a proof."""
_PROOF: Final = [
    {"name": name, "in": "query", "required": False, "schema": {"type": "string"}, "description": text}
    for name, text in (
        ("User", "Who calls"),
        ("Nonce", "8 to 128 characters that were never used before"),
        ("Hash", 'SHA-256 or SHA-1 of "User Nonce Secret", in hexadecimal'),
    )
]


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a route; some belong to all routes."""
    return {status: {"model": Problem, "description": _MEANING[status]} for status in (*statuses, *_ALWAYS)}


def described(
    *statuses: int, body: type[Body] | None = None, params: tuple[str, ...] = (), **success: Any
) -> dict[str, Any]:
    """Return the description of a route that asks for a proof, for the decorator of its endpoint.

    Args:
        statuses: its errors beside those of all routes.
        body: the JSON object that it takes.
        params: what it takes in its address beside the proof.
        success: what 200 returns, where that is no JSON.
    """
    extra: dict[str, Any] = {"parameters": [*_PROOF, *map(_parameter, params)], "security": [{KEY: []}, {}]}
    if body is not None:
        content = {"application/json": {"schema": inlined(body.model_json_schema())}}
        extra["requestBody"] = {"required": True, "content": content}
    responses = errors(*statuses) | ({200: success} if success else {})
    return {"responses": responses, "openapi_extra": extra}


def _parameter(name: str) -> dict[str, Any]:
    schema = _SCHEMAS.get(name, {"type": "string", "minLength": 1})
    return {"name": name, "in": "query", "required": "default" not in schema, "schema": schema}
