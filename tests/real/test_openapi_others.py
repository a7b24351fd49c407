"""OpenAPI descriptions not written for us: of a package that many use, and made by FastAPI for a real server."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import uvicorn
from fastapi import Cookie, Depends, FastAPI, Header, HTTPException, Query
from fastapi.security import APIKeyHeader, HTTPBearer
from metatree_memory_tools import build_tree
from metatree_memory_tools.openapi.source import OpenApi
from pydantic import BaseModel, Field

from metatree import Tool, Tree, search
from metatree.errors import BadModelAnswer, FetchFailed
from metatree.tools.tool import ToolGroup
from metatree.trees.source_types import SourceRef

pytestmark = pytest.mark.real


def _tools(tree: Tree) -> dict[str, Tool]:
    groups = OpenApi().tools_of(tree, tree.sources()[0])
    found = [tool for group in groups if isinstance(group, ToolGroup) for tool in group.tools]
    return {tool.title: tool for tool in found if isinstance(tool, Tool)}


def _call(tree: Tree, title: str, arguments: dict[str, Any]) -> Any:
    tool = _tools(tree)[title]
    return tool.function(arguments=tool.validated(arguments))


def test_the_description_of_a_package_that_many_use(real_files: Path, tmp_path: Path) -> None:
    (file,) = (real_files / "jupyterlab-server").rglob("rest-api.yml")
    with build_tree(f"openapi:{file}", out=tmp_path / "tree") as tree:
        (top,) = tree.children()
        assert top.title == "JupyterLab Server" and "note" not in top.attributes
        operations = [node for _, node in tree.walk() if node.kind == "api operation"]
        # Every method under a path, counted without reading YAML.
        methods = re.findall(r"^    (?:get|put|post|patch|delete|head):", file.read_text(), re.MULTILINE)
        assert len(operations) == len(methods) >= 10
        found = search("Which operation deletes a workspace?", tree=tree, returns="nodes", k=1)
        assert found.nodes[0].id.endswith("DELETE /lab/api/workspaces/{space_name}")
        tool = next(
            tool
            for tool in _tools(tree).values()
            if tool.id.endswith("DELETE /lab/api/workspaces/{space_name}")
        )
        assert tool.changes and tool.validated({"space_name": "a"}) == {"space_name": "a"}


class Planet(BaseModel):
    name: str
    moons: list[str] = Field(default_factory=list, max_length=3)
    mass: float | None = Field(None, gt=0)
    neighbour: Planet | None = None


app = FastAPI(title="Observatory", description="Planets and their moons.")
planets: dict[str, Planet] = {"Mars": Planet(name="Mars", moons=["Phobos", "Deimos"], mass=0.107)}
key = APIKeyHeader(name="X-Key")
bearer = HTTPBearer()


@app.get("/planets/{name}", tags=["planets"], summary="Show a planet")
def show(name: str, verbose: bool = False) -> Planet:
    """Return mass and moons of a planet."""
    if name not in planets:
        raise HTTPException(404, "no such planet")
    return planets[name]


@app.put("/planets/{name}", tags=["planets"], summary="Enter a planet", status_code=201)
def enter(name: str, planet: Planet, _: Annotated[str, Depends(key)]) -> Planet:
    planets[name] = planet
    return planet


@app.get("/seen", summary="What was sent")
def seen(
    ids: Annotated[list[int], Query()],
    x_trace: Annotated[str | None, Header()] = None,
    session: Annotated[str | None, Cookie()] = None,
) -> dict[str, Any]:
    return {"ids": ids, "trace": x_trace, "session": session}


@app.get("/secret", summary="Open the vault")
def vault(token: Annotated[Any, Depends(bearer)]) -> str:
    return f"opened with {token.credentials}"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [free]})
        thread.start()
        yield f"127.0.0.1:{free.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def tree(address: str, tmp_path: Path) -> Iterator[Tree]:
    source = SourceRef(f"http://{address}/openapi.json", {"allow": [address]}, "observatory", "openapi")
    with build_tree(source, out=tmp_path / "tree") as built:
        yield built


def test_a_description_made_by_fastapi_calls_its_server(tree: Tree) -> None:
    assert tree.get("observatory").title == "Observatory"
    result = search("Show the planet `Mars`: how heavy is Phobos, its moon?", tree=tree, sure=0.1)
    assert '"Phobos"' in str(result.answer)
    assert next(e.data["tool"] for e in result.trace if e.event == "tool").endswith("show_planets__name__get")
    with pytest.raises(FetchFailed, match=r"answers 404: .*no such planet"):
        _call(tree, "Show a planet", {"name": "Vulcan"})
    assert _call(tree, "What was sent", {"ids": [1, 2], "x-trace": "t", "session": "a b"}) == (
        '{"ids":[1,2],"trace":"t","session":"a%20b"}'
    )


def test_a_body_and_credentials_as_fastapi_checks_them(
    tree: Tree, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    venus: dict[str, Any] = {"name": "Venus", "neighbour": {"name": "Mars"}}
    with pytest.raises(FetchFailed, match=r"answers 40[13]"):
        _call(tree, "Enter a planet", {"name": "Venus", "body": venus})
    monkeypatch.setenv("METATREE_AUTH_127_0_0_1", "k3y-value")
    made = _call(tree, "Enter a planet", {"name": "Venus", "body": venus})
    assert '"neighbour":{"name":"Mars"' in made.content and planets["Venus"].mass is None
    assert _call(tree, "Open the vault", {}) == '"opened with [secret]"'
    wrongs: list[dict[str, Any]] = [
        {"name": "X", "moons": ["a"] * 4},
        {"moons": []},
        {"name": "X", "mass": 0},
    ]
    for wrong in wrongs:
        with pytest.raises(BadModelAnswer):
            _tools(tree)["Enter a planet"].validated({"name": "X", "body": wrong})
