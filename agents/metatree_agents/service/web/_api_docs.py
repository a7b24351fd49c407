"""`/docs`: Swagger UI over the description of the API, from files of an installed package and not of this one.

They are 1.7 MB and change often; `fastapi-offline` has them (`metatree-memory[api-docs]`), and nothing of it is
imported.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from metatree_agents.service.web._guard import session_of
from metatree_agents.service.web._replies import HEADERS, PageError, page

router = APIRouter()
_FILES: Final = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


@cache
def _folder() -> Path | None:
    found = find_spec("fastapi_offline")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "static"
    return folder if all((folder / name).is_file() for name in _FILES) else None


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Show all routes, to be tried with an API key."""
    if _folder() is None:
        raise PageError(
            404,
            "This server has no page to try its routes on: pip install 'metatree-memory[api-docs]' adds it.",
        )
    return page(request, "docs.html", session=await session_of(request))


@router.get("/docs/{name}")
async def docs_file(name: str) -> Response:
    """Give one of the files of Swagger UI."""
    folder = _folder()
    if folder is None or name not in _FILES:
        raise PageError(404, "There is no such file.")
    headers = {**HEADERS, "Cache-Control": "public, max-age=3600"}
    return FileResponse(folder / name, media_type=_FILES[name], headers=headers)
