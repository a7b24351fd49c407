"""Every route for every role, from one table; and proofs, which are good once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.service.accounts.users import Users
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.settings import ServiceSettings

from tests.integration.service.conftest import SECRETS, Client, Served, opened, proof, served

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]

ASK, ANSWER = {"frontend", "user", "admin"}, {"engine"}
ROLES = ASK | ANSWER
HELD = {"Topic": "theirs", "Lease": "x"}
ROUTES: dict[tuple[str, str], tuple[set[str], dict[str, Any], Any]] = {
    ("GET", "login"): (ROLES, {}, None),
    ("GET", "user-topics"): (ASK, {"OnBehalfOf": "User_1"}, None),
    ("DELETE", "topic"): (ASK, {"OnBehalfOf": "User_1", "Topic": "to delete"}, None),
    ("POST", "add-query"): (ASK, {}, {"Topic": "new", "User": "User_1", "Query": "q"}),
    ("GET", "check-query"): (ASK, {"Topic": "theirs", "Seq": 1}, None),
    ("GET", "get-topic-thread"): (ROLES, {"Topic": "theirs"}, None),
    ("GET", "events"): (ASK, {"Topic": "theirs", "Seq": 1}, None),
    ("POST", "add-lookup"): (ASK, {}, {"Topic": "theirs", "Seq": 1, "Fragment": "f"}),
    ("GET", "get-lookups"): (ASK, {"Topic": "theirs"}, None),
    ("POST", "recommend"): (
        ASK,
        {},
        {"Topic": "theirs", "OnBehalfOf": "User_1", "Query": "q", "Fragment": "f", "Type": "Promote Answer"},
    ),
    ("GET", "trees"): (ROLES, {}, None),
    ("POST", "withdraw-recommendation"): (ASK, {}, {"OnBehalfOf": "User_1", "Number": 999}),
    ("POST", "rename-topic"): (ASK, {}, {"Topic": "theirs", "OnBehalfOf": "User_1", "Title": "Ours"}),
    ("GET", "get-new-queries"): (ANSWER, {}, None),
    ("POST", "give-new-answer"): (ANSWER, {}, {"Topic": "theirs", "Seq": 1, "Query": "q", "Answer": ["a"]}),
    ("GET", "get-new-lookup"): (ANSWER, {}, None),
    ("POST", "give-new-matches"): (ANSWER, {}, {"Fingerprint": "0" * 12, "Matches": []}),
    ("POST", "renew-lease"): (ANSWER, {}, HELD),
    ("POST", "hand-back"): (ANSWER, {}, HELD),
    ("POST", "leave"): (ANSWER, {}, None),
    ("POST", "give-router-state"): (ANSWER, {}, {"Error": ""}),
    ("POST", "give-progress"): (ANSWER, {}, {"Topic": "theirs", "Seq": 1, "Steps": []}),
    ("GET", "get-recommendations"): (ANSWER, {}, None),
    ("GET", "get-identity"): (ANSWER, {}, None),
    ("GET", "get-tree"): (ANSWER, {}, None),
    ("GET", "get-tree-file"): (ANSWER, {"Digest": "0" * 32}, None),
    ("GET", "get-memory"): (ANSWER, {}, None),
    ("POST", "give-memory"): (ANSWER, {}, {"Changes": []}),
    ("POST", "ask-person"): (
        ANSWER,
        {},
        {**HELD, "Seq": 1, "Questions": [{"Key": "k", "Question": "Which one?"}]},
    ),
    ("POST", "answer-question"): (ASK, {}, {"Topic": "theirs", "Seq": 1, "Answer": "This one."}),
    ("POST", "stop-query"): (ASK, {}, {"Topic": "theirs", "Seq": 1}),
    ("POST", "continue-query"): (ASK, {}, {"Topic": "theirs", "Seq": 1}),
    ("POST", "wait-for-stop"): (ANSWER, {}, {**HELD, "Seq": 1}),
    ("GET", "admin/overview"): ({"admin"}, {}, None),
    ("POST", "admin/requeue"): ({"admin"}, {}, {"Topic": "theirs"}),
    ("POST", "admin/release"): ({"admin"}, {}, {"Topic": "theirs"}),
    ("POST", "admin/remove-user"): ({"admin"}, {}, {"Name": "Nobody"}),
    ("GET", "admin/trees"): ({"admin"}, {}, None),
    ("POST", "admin/set-tree"): ({"admin"}, {}, {"Name": "not a name"}),
    ("POST", "admin/remove-tree"): ({"admin"}, {}, {"Name": "none"}),
    ("POST", "admin/set-tree-right"): ({"admin"}, {}, {"Tree": "none", "Who": "everybody", "May": True}),
    ("POST", "admin/set-group"): ({"admin"}, {}, {"Group": "g", "Members": ["User_1"], "Member": True}),
    ("GET", "admin/agents"): ({"admin"}, {}, None),
    ("GET", "admin/agent"): ({"admin"}, {"Agent": "a"}, None),
    ("POST", "admin/answer-agent"): ({"admin"}, {}, {"Agent": "a", "Question": "a:q1", "Answer": "yes"}),
    ("POST", "admin/retry-agent"): ({"admin"}, {}, {"Agent": "a"}),
    ("POST", "admin/cancel-agent"): ({"admin"}, {}, {"Agent": "a"}),
}
"""Who may use a route, and a request that is right but for that."""

OPEN = {("GET", "/healthz"), ("GET", "/metrics")}
"""Routes that ask nobody who they are, or nobody on the same machine."""
KEYED = {("GET", "/v1/models"), ("GET", "/v1/models/{name}"), ("POST", "/v1/chat/completions")}
"""Routes that ask for an API key."""
NOTHING_THERE = {
    "get-tree-file",
    "get-new-lookup",
    "give-new-matches",
    "renew-lease",
    "hand-back",
    "ask-person",
    "answer-question",
    "stop-query",
    "continue-query",
    "withdraw-recommendation",
} | {
    f"admin/{name}"
    for name in (
        "requeue",
        "release",
        "set-tree",
        "remove-tree",
        "set-tree-right",
        "remove-user",
        "agents",
        "agent",
        "answer-agent",
        "retry-agent",
        "cancel-agent",
    )
}
"""Routes that say 404, 409 or 422 to the requests of the table, to those who may use them."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service with a topic of User_1 whose query is answered."""
    settings = ServiceSettings(claim_timeout_s=0.0, answer_timeout_s=0.2)
    with served(tmp_path_factory.mktemp("roles") / "service.db", settings) as running:
        running.user.ask("q", topic="theirs", user="User_1")
        running.engine.answer("q", "a", topic="theirs")
        yield running


def of_role(service: Served, role: str) -> Client:
    return next(Client(service.url, name, secret) for name, (its, secret) in SECRETS.items() if its == role)


def test_the_table_has_every_route(service: Served) -> None:
    described = requests.get(f"{service.url}/openapi.json", timeout=60).json()["paths"]
    found = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert found == {(method, f"/api/{route}") for method, route in ROUTES} | OPEN | KEYED


@pytest.mark.parametrize(("method", "route"), ROUTES)
@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_may_do_what_the_table_says_and_nothing_else(
    service: Served, method: str, route: str, role: str
) -> None:
    allowed, given, body = ROUTES[method, route]
    if route == "topic":
        service.user.ask("q", topic="to delete", user="User_1")
    said = of_role(service, role).call(method, route, json=body, **given)
    if role in allowed:
        assert said.status_code in (200, 404, 409, 422), said.text
        assert route in NOTHING_THERE or said.ok, said.text
    else:
        assert said.status_code == 403
        assert "may not use this route" in said.json()["detail"]


@pytest.mark.parametrize(("method", "route"), ROUTES)
def test_nobody_does_anything_without_a_proof(service: Served, method: str, route: str) -> None:
    _, given, body = ROUTES[method, route]
    before = service.user.get("get-topic-thread", Topic="theirs").json()
    wrong = proof("Frontend_1", "x" * 24)
    for parameters in ({}, wrong, {**wrong, "User": "Nobody"}):
        said = requests.request(
            method, f"{service.url}/api/{route}", params={**parameters, **given}, json=body, timeout=60
        )
        assert said.status_code == 401
        detail = said.json()["detail"]
        assert detail == "wrong User, Nonce or Hash, or the Nonce was used before" or (
            not parameters and detail.startswith("no API key")
        )
    assert service.user.get("get-topic-thread", Topic="theirs").json() == before


@pytest.mark.parametrize(
    ("method", "route"),
    [
        each
        for each, (roles, given, _) in ROUTES.items()
        if "user" in roles and given.get("Topic") == "theirs"
    ],
)
def test_a_user_sees_no_topic_of_another(service: Served, method: str, route: str) -> None:
    _, given, body = ROUTES[method, route]
    refused = service.other_user.call(method, route, json=body, **given)
    if route in ("rename-topic", "recommend"):  # for somebody else
        assert refused.status_code == 403
        return
    none = {"Topic": "none"}
    missing = service.other_user.call(
        method, route, json=None if body is None else {**body, **none}, **({**given, **none} if given else {})
    )
    assert (refused.status_code, refused.text) == (404, missing.text), "as if it were not there"


def test_a_user_changes_nothing_of_another(service: Served) -> None:
    other = service.other_user
    service.user.ask("q", topic="kept", user="User_1")
    for owner in ("User_1", "User_2"):
        assert other.call("DELETE", "topic", OnBehalfOf=owner, Topic="kept").status_code == 403
        assert other.ask("mine", topic="kept", user=owner).status_code == 403
    lookup = {"Topic": "kept", "Seq": 1, "Fragment": "f"}
    assert other.post("add-lookup", lookup).status_code == 404
    praise = {"Topic": "kept", "Query": "q", "Fragment": "f", "Type": "Promote Answer"}
    assert other.post("recommend", {**praise, "OnBehalfOf": "User_1"}).status_code == 403
    assert other.post("recommend", {**praise, "OnBehalfOf": "User_2"}).status_code == 404
    free = {**praise, "Topic": "of nobody", "OnBehalfOf": "User_2"}
    assert other.post("recommend", free).status_code == 200, "a recommendation needs no topic"
    thread = service.user.get("get-topic-thread", Topic="kept").json()
    assert [one["Query"] for one in thread] == ["q"]
    service.engine.answer("q", "a", topic="kept")


# proofs


def test_a_proof_is_good_once_also_after_a_restart(tmp_path: Path) -> None:
    fresh = proof("User_1", SECRETS["User_1"][1])
    for status in (200, 401, 401):
        with served(tmp_path / "service.db", ServiceSettings()) as service:
            assert requests.get(f"{service.url}/api/login", params=fresh, timeout=60).status_code == status


def test_a_proof_sent_many_times_at_once_to_two_servers_is_accepted_once(serve: Serve) -> None:
    urls = [serve().url, serve().url] * 3
    with ThreadPoolExecutor(len(urls)) as pool:
        for _ in range(5):
            fresh = proof("User_1", SECRETS["User_1"][1])
            start = threading.Barrier(len(urls))

            def use(url: str, fresh: dict[str, str] = fresh, start: threading.Barrier = start) -> int:
                start.wait()
                return requests.get(f"{url}/api/login", params=fresh, timeout=60).status_code

            assert sorted(pool.map(use, urls)) == [200, 401, 401, 401, 401, 401]


def test_an_unknown_user_takes_the_same_steps_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [asyncio.run(hashed_and_compared(name, monkeypatch)) for name in ("User_1", "Nobody")]
    assert len(steps[0]) == 2, "one hash, one comparison"
    assert steps[0] == steps[1]


async def hashed_and_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the sizes of what is hashed and compared for a wrong proof of a user."""
    database = SqliteDatabase.open(":memory:")
    users = Users(database)
    await users.add("User_1", "user")
    sizes: list[tuple[int, ...]] = []
    compare, new = hmac.compare_digest, hashlib.new

    def comparing(one: bytes, other: bytes) -> bool:
        sizes.append((len(one), len(other)))
        return compare(one, other)

    def hashing(algorithm: str, said: bytes) -> Any:
        sizes.append((len(said.replace(name.encode(), b"")),))
        return new(algorithm, said)

    with monkeypatch.context() as patched:
        patched.setattr(hmac, "compare_digest", comparing)
        patched.setattr(hashlib, "new", hashing)
        assert await users.verified(name, "n" * 16, "0" * 64) is None
    await database.close()
    return sizes


# waiting


def test_a_client_that_left_before_a_query_came_never_takes_it(serve: Serve) -> None:
    service = serve(claim_timeout_s=20.0)
    host, port = service.url.removeprefix("http://").split(":")
    for number in range(30):
        pairs = "&".join(f"{k}={v}" for k, v in proof("Inference_1", SECRETS["Inference_1"][1]).items())
        going = [socket.create_connection((host, int(port))) for _ in range(3)]
        for each in going:
            each.sendall(f"GET /api/get-new-queries?{pairs} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        if number % 2:
            threading.Event().wait(0.01)  # some wait already, some requests have not been read yet
        for each in going:
            each.close()
        service.frontend.ask("q", topic=str(number))
        found = service.other_engine.get("get-new-queries").json()
        assert found["Topic"] == str(number)
        service.other_engine.answer("q", "a", topic=str(number))


def test_what_waits_for_somebody_who_was_taken_out_ends(serve: Serve, place: Path | str) -> None:
    """By this process, or by another one; long before the time is over, and whoever is still there waits on."""
    service = serve(claim_timeout_s=60.0, answer_timeout_s=60.0, chat_wait_s=60.0)
    parked = {
        "Topic": "theirs",
        "Seq": 1,
        "Questions": [{"Key": "1", "Question": "Which?", "Kind": "question"}],
    }
    service.user.ask("q", topic="theirs", user="User_1")
    lease = service.engine.get("get-new-queries").json()["Lease"]
    assert service.engine.post("ask-person", {**parked, "Lease": lease}).status_code == 200
    service.other_user.ask("q", topic="others", user="User_2")
    assert service.engine.get("get-new-queries").json()["Topic"] == "others"
    keyed = {"Authorization": f"Bearer {service.keys['User_1']}"}
    chat: Any = {"model": "metatree", "messages": [{"role": "user", "content": "And this?"}]}
    said = {"Topic": "theirs", "Seq": 2, "User": "User_1", "Query": "and then?"}
    assert (
        service.user.post("add-query", {key: said[key] for key in ("Topic", "User", "Query")}).status_code
        == 200
    )

    def waits(count: int) -> None:
        while sum(service.admin.get("admin/overview").json()["Connected"].values()) < count:
            threading.Event().wait(0.02)

    with ThreadPoolExecutor(5) as pool:
        checks = pool.submit(service.user.get, "check-query", Topic="theirs", Seq=2)
        other = pool.submit(service.other_user.get, "check-query", Topic="others", Seq=1)
        waits(2)
        chats = pool.submit(
            requests.post, f"{service.url}/v1/chat/completions", json=chat, headers=keyed, timeout=90
        )
        waits(3)
        claims = pool.submit(service.other_engine.get, "get-new-queries")
        assert claims.result().json()["Queries"] == [{"1": "And this?"}]
        claims = pool.submit(service.other_engine.get, "get-new-queries")
        waits(4)

        async def take_out() -> None:
            database = opened(place)
            await database.start()
            await Users(database).remove("User_1")
            await database.close()

        asyncio.run(take_out())
        assert checks.result().status_code == chats.result().status_code == 401
        assert service.admin.post("admin/remove-user", {"Name": "Inference_2"}).status_code == 200
        assert claims.result().status_code == 401
        assert not other.done()
        assert service.engine.answer("q", "a", topic="others").status_code == 200
        assert other.result().json()["Answer"] == ["a"]
