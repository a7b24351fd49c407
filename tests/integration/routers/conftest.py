"""A model server on loopback, routers that talk to it, and a small tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from metatree_routers.llm import LLMRouter
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree import Node, Option, RouteRequest, Tree
from metatree.testing._model_server import ModelRequest, ModelServer


@pytest.fixture(autouse=True)
def cache_in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is remembered of servers away from the user's cache folder."""
    monkeypatch.setenv("METATREE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """Return a function that starts a model server; all stop with the test."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(ModelServer(*args, **options))


@pytest.fixture
def router_for() -> Callable[..., LLMRouter]:
    """Return a function that makes a router for a server; nothing is remembered of the server."""

    def make(server: ModelServer, **options: Any) -> LLMRouter:
        return LLMRouter("stub", base_url=server.url, **{"cache": MemoryCache(), **options})

    return make


@pytest.fixture
def request_of() -> Callable[..., RouteRequest]:
    """Return a function that makes a request with some options."""

    def make(
        *titles: str, question: str = "Where are tokens checked?", errors: tuple[str, ...] = ()
    ) -> RouteRequest:
        options = tuple(Option(f"id-{n}", title, f"About {title}") for n, title in enumerate(titles))
        return RouteRequest((question,), "", Node("n", "src"), options, errors)

    return make


@pytest.fixture
def tree() -> Iterator[Tree]:
    """A tree with two branches and three leaves."""
    with Tree.create(":memory:") as made:
        made.add(Node("auth", "Auth", "Login and tokens"))
        made.add(Node("draw", "Draw", "Circles and squares"))
        made.add(Node("auth/tokens", "tokens.py", "How long tokens live", "TTL = 3600  # one hour"), "auth")
        made.add(Node("auth/login", "login.py", "The login form", "def login(): ..."), "auth")
        made.add(Node("draw/circle", "circle.py", "Draw a circle", "def circle(): ..."), "draw")
        yield made


def walk_to(
    *titles: str, answer: str = "one hour", quote: str = "TTL = 3600"
) -> Callable[[ModelRequest], Any]:
    """Return a model that chooses the options with these titles, and answers from a text that has the quote."""

    def model(request: ModelRequest) -> Any:
        if "choice" in request.system:
            for title in titles:
                label = request.label(title)
                if label is not None:
                    return {"reason": f"{title} it is", "choice": label, "ruled_out": []}
            return {"reason": "nothing here", "choice": "none", "ruled_out": []}
        if "answers" in request.system:
            has_quote = quote in request.user
            reply = {"question": "Q1", "answer": answer, "quote": quote, "complete": True}
            return {"answers": [reply] if has_quote else [], "new_questions": [], "notes": ""}
        return "a text"

    return model


@pytest.fixture
def right_model() -> Callable[..., Callable[[ModelRequest], Any]]:
    """Return `walk_to`."""
    return walk_to
