"""A service in a server of its own on loopback, and callers that know nothing of metatree."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from metatree_agents.service._app import create_app
from metatree_agents.service.accounts.keys import Keys
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import ServiceDatabase, SqliteDatabase
from metatree_agents.service.database.postgres import PostgresDatabase
from metatree_agents.service.goal_agents import GoalAgents
from metatree_agents.service.http.slow_clients import TimeoutProtocol
from metatree_agents.service.settings import ServiceSettings

from metatree import Tree
from tests.real.postgres import Server, serving

SECRETS = {
    "Frontend_1": ("frontend", "f" * 24),
    "Inference_1": ("engine", "e" * 24),
    "Inference_2": ("engine", "g" * 24),
    "User_1": ("user", "u" * 24),
    "User_2": ("user", "v" * 24),
    "Admin_1": ("admin", "a" * 24),
}


def proof(name: str, secret: str, *, nonce: str | None = None, algorithm: str = "sha1") -> dict[str, str]:
    """Return the parameters that prove a secret, as the wire format says."""
    nonce = nonce or secrets.token_hex(8)
    said = f"{name} {nonce} {secret}".encode()
    return {"User": name, "Nonce": nonce, "Hash": hashlib.new(algorithm, said).hexdigest()}


class Client:
    """One caller."""

    def __init__(self, url: str, name: str, secret: str) -> None:
        self.url, self.name, self.secret = url, name, secret

    def call(self, method: str, route: str, *, json: Any = None, **given: Any) -> requests.Response:
        """Make one call with a fresh proof."""
        parameters = {**proof(self.name, self.secret), **given}
        return requests.request(method, f"{self.url}/api/{route}", params=parameters, json=json, timeout=120)

    def get(self, route: str, **given: Any) -> requests.Response:
        return self.call("GET", route, **given)

    def post(self, route: str, body: Any) -> requests.Response:
        return self.call("POST", route, json=body)

    def ask(self, text: str, *, topic: str = "T", user: str = "John_Doe", **more: Any) -> requests.Response:
        return self.post("add-query", {"Topic": topic, "User": user, "Query": text, **more})

    def answer(self, text: str, *said: str, topic: str = "T", seq: int = 1, **more: Any) -> requests.Response:
        return self.post(
            "give-new-answer", {"Query": text, "Topic": topic, "Seq": seq, "Answer": said, **more}
        )


class Served:
    """A running service."""

    def __init__(self, url: str, keys: dict[str, str]) -> None:
        self.url = url
        self.keys = keys
        """An API key of each user."""
        self.at_the_end = ExitStack()
        """What is closed with the service: connections of clients."""
        self.frontend, self.engine, self.other_engine, self.user, self.other_user, self.admin = (
            Client(url, name, secret) for name, (_, secret) in SECRETS.items()
        )


def opened(where: Path | str) -> ServiceDatabase:
    """Return a database by a path, or an address of PostgreSQL."""
    if str(where).startswith("postgresql://"):
        return PostgresDatabase(str(where))
    return SqliteDatabase.open(where)


@contextmanager
def served(
    where: Path | str,
    settings: ServiceSettings,
    memory: Tree | None = None,
    agents: GoalAgents | None = None,
    trees: Mapping[str, Tree] | None = None,
) -> Iterator[Served]:
    """Run the service on a free port of the loopback interface, in a thread with a loop of its own."""

    async def add_users() -> None:
        database = opened(where)
        await database.start()
        for name, (role, secret) in SECRETS.items():
            await Users(database).add(name, role, secret=secret)
            keys[name] = await Keys(database).add(name)
        await database.close()

    keys: dict[str, str] = {}
    asyncio.run(add_users())
    database = opened(where)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(database, settings, memory=memory, agents=agents, trees=trees),
            host="127.0.0.1",
            port=0,
            log_level="error",
            http=TimeoutProtocol,
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            threading.Event().wait(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        service = Served(f"http://127.0.0.1:{port}", keys)
        with service.at_the_end:
            yield service
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server."""
    with serving() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.real)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the database of a test is, which is empty: a file, or a schema of its own of PostgreSQL."""
    if request.param == "sqlite":
        return tmp_path / "service.db"
    server: Server = request.getfixturevalue("postgres")
    return f"{server.address()}&schema=t_{secrets.token_hex(8)}"


@pytest.fixture
def serve(place: Path | str) -> Iterator[Callable[..., Served]]:
    """Return a function that starts a service with given settings."""
    with ExitStack() as stack:

        def start(
            where: Path | str | None = None,
            *,
            memory: Tree | None = None,
            agents: GoalAgents | None = None,
            trees: Mapping[str, Tree] | None = None,
            **given: Any,
        ) -> Served:
            given = {"claim_timeout_s": 0.2, "answer_timeout_s": 0.2, **given}
            return stack.enter_context(
                served(where or place, ServiceSettings(**given), memory, agents, trees)
            )

        yield start


@pytest.fixture
def service(serve: Callable[..., Served]) -> Served:
    """A running service that waits for only 0.2 s."""
    return serve()
