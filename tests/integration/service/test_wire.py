"""Every documented route, and every decision on what the documents leave open, over real HTTP."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.service.accounts.limits import Rates
from metatree_agents.service.accounts.users import Proofs, Users

from .conftest import SECRETS, Client, Served, opened, proof

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
TOPIC = "DGQIn+5troxI"


def test_a_whole_conversation(service: Served) -> None:
    asked = service.frontend.ask(
        "What is the meaning of life?", topic=TOPIC, Modifiers={"Region": "EU"}, Model="m"
    )
    assert asked.status_code == 200
    assert asked.json().keys() == {"Topic", "Seq", "Timestamp"}
    assert (asked.json()["Topic"], asked.json()["Seq"]) == (TOPIC, 1)
    assert STAMP.fullmatch(asked.json()["Timestamp"])
    assert service.frontend.ask("What is your favorite color?", topic=TOPIC).json()["Seq"] == 2
    waiting = service.frontend.get("check-query", Topic=TOPIC, Seq=1)
    assert {name: waiting.json()[name] for name in ("Query", "Topic", "Seq", "Answer", "Think")} == {
        "Query": "What is the meaning of life?",
        "Topic": TOPIC,
        "Seq": 1,
        "Answer": None,
        "Think": None,
    }
    batch = service.engine.get("get-new-queries").json()
    assert batch["Topic"] == TOPIC
    assert batch["Queries"] == [{"1": "What is the meaning of life?"}, {"2": "What is your favorite color?"}]
    assert batch["Modifiers"]["1"] == {"Region": "EU"} and batch["Model"] == {"1": "m", "2": "default"}
    given = service.engine.post(
        "give-new-answer",
        {
            "Query": "What is the meaning of life?",
            "Topic": TOPIC,
            "Seq": 1,
            "Think": ["Hm."],
            "Answer": ["It don’t mean a thing.", "Swing."],
        },
    )
    assert given.status_code == 200
    thread = service.frontend.get("get-topic-thread", Topic=TOPIC).json()
    assert [(one["Seq"], one["Answer"], one["Think"]) for one in thread] == [
        (1, ["It don’t mean a thing.", "Swing."], ["Hm."]),
        (2, None, None),
    ]
    assert service.frontend.get("user-topics", OnBehalfOf="John_Doe").json() == {
        TOPIC: "What is the meaning of life?"
    }
    assert service.frontend.get("user-topics", OnBehalfOf="Nobody").status_code == 404
    assert service.frontend.call("DELETE", "topic", OnBehalfOf="Nobody", Topic=TOPIC).status_code == 403
    assert service.frontend.call("DELETE", "topic", OnBehalfOf="John_Doe", Topic=TOPIC).status_code == 200
    assert service.frontend.call("DELETE", "topic", OnBehalfOf="John_Doe", Topic=TOPIC).status_code == 403
    assert service.frontend.get("get-topic-thread", Topic=TOPIC).status_code == 404


def test_lookups(service: Served) -> None:
    fragment = "Employees can accrue comp time..."
    service.frontend.ask("Comp time?")
    wish = {"Topic": "T", "Seq": 1, "Fragment": fragment}
    added = service.frontend.post("add-lookup", wish)
    assert added.status_code == 200
    assert added.json().keys() == {"Fingerprint", "Timestamp"}
    assert added.json()["Fingerprint"] == "4892a5d812af"
    assert service.frontend.post("add-lookup", {**wish, "Count": 2}).json()["Fingerprint"] == "4892a5d812af"
    assert service.frontend.post("add-lookup", {**wish, "Seq": 9}).status_code == 404
    assert service.frontend.post("add-lookup", {**wish, "Threshold": -1}).status_code == 422
    first = service.engine.get("get-new-lookup")
    assert first.json() == {"Fragment": fragment, "Fingerprint": "4892a5d812af", "Count": 5, "Threshold": 1.0}
    assert service.other_engine.get("get-new-lookup").status_code == 404, (
        "one of a fingerprint is out at a time"
    )
    matches = {"Fingerprint": "4892a5d812af", "Matches": ["Distance: 0.75\n.....\nOvertime work"]}
    assert service.engine.post("give-new-matches", matches).status_code == 200
    assert service.engine.post("give-new-matches", matches).status_code == 200, "the same again"
    assert service.other_engine.get("get-new-lookup").json()["Count"] == 2
    assert service.engine.post("give-new-matches", {**matches, "Fingerprint": "0" * 12}).status_code == 404
    assert service.frontend.get("get-lookups", Topic="T").json() == {
        "Topic": "T",
        "Lookups": [{"Query": "Comp time?", "Fragments": [{fragment: matches["Matches"]}, {fragment: []}]}],
    }


def test_recommend_takes_the_documented_types(service: Served) -> None:
    body = {"Topic": "T", "OnBehalfOf": "Calico_Seders", "Query": "q", "Fragment": "f", "Comment": "c"}
    for kind in (
        "Suggest Improvement",
        "Promote Answer",
        "Make Correction",
        "Add Missing Info",
        "Clarify Phrasing",
    ):
        assert STAMP.fullmatch(service.frontend.post("recommend", {**body, "Type": kind}).json()["Timestamp"])
    assert service.frontend.post("recommend", {**body, "Type": "Praise"}).status_code == 422


# who may call


def test_the_documented_hash_is_right_and_the_one_with_a_newline_only_where_it_is_allowed(
    serve: Serve,
) -> None:
    secret = SECRETS["User_1"][1]
    service = serve()
    login = f"{service.url}/api/login"
    for algorithm in ("sha1", "sha256"):
        assert (
            requests.get(login, params=proof("User_1", secret, algorithm=algorithm), timeout=60).status_code
            == 200
        )
    old = proof("User_1", secret + "\n")
    assert requests.get(login, params=old, timeout=60).status_code == 401
    allowing = serve(proofs=Proofs(newline=True))
    assert requests.get(f"{allowing.url}/api/login", params=old, timeout=60).status_code == 200
    strict = serve(proofs=Proofs(sha1=False))
    assert (
        requests.get(f"{strict.url}/api/login", params=proof("User_1", secret), timeout=60).status_code == 401
    )


def test_a_nonce_is_accepted_once_also_by_another_process_and_never_burnt_by_others(serve: Serve) -> None:
    secret = SECRETS["User_1"][1]
    service, other = serve(), serve()
    fresh = proof("User_1", secret)
    wrong = {**fresh, "Hash": "0" * 40}
    assert requests.get(f"{service.url}/api/login", params=wrong, timeout=60).status_code == 401
    assert requests.get(f"{service.url}/api/login", params=fresh, timeout=60).status_code == 200
    assert requests.get(f"{service.url}/api/login", params=fresh, timeout=60).status_code == 401
    assert requests.get(f"{other.url}/api/login", params=fresh, timeout=60).status_code == 401
    sha256 = proof("User_1", secret, nonce=fresh["Nonce"], algorithm="sha256")
    assert requests.get(f"{service.url}/api/login", params=sha256, timeout=60).status_code == 401


def test_a_secret_that_was_changed_or_taken_out_elsewhere_is_refused_at_once(
    service: Served, place: Path | str
) -> None:
    async def change(role: str | None) -> str:
        database = opened(place)
        await database.start()
        try:
            if role is not None:
                return await Users(database).add("User_1", role)
            await Users(database).remove("User_1")
            return ""
        finally:
            await database.close()

    assert service.user.get("login").status_code == 200
    former, service.user.secret = service.user.secret, asyncio.run(change("user"))
    assert service.user.get("login").status_code == 200
    assert Client(service.url, "User_1", former).get("login").status_code == 401
    service.user.secret = asyncio.run(change("engine"))
    assert service.user.get("user-topics", OnBehalfOf="User_1").status_code == 403
    asyncio.run(change(None))
    assert service.user.get("login").status_code == 401


@pytest.mark.parametrize(
    "given",
    [
        {"User": "User_1"},
        proof("Nobody", "x" * 24),
        proof("User_1", "x" * 24),
        proof("User_1", SECRETS["User_1"][1], nonce="short"),
        proof("User_1", SECRETS["User_1"][1], nonce="n" * 129),
        {**proof("User_1", SECRETS["User_1"][1]), "Hash": "é" * 40},
        {**proof("User_1", SECRETS["User_1"][1]), "Hash": ""},
    ],
)
def test_wrong_credentials_are_all_the_same(service: Served, given: dict[str, str]) -> None:
    said = requests.get(f"{service.url}/api/login", params=given, timeout=60)
    assert said.status_code == 401
    assert said.json() == {"detail": "wrong User, Nonce or Hash, or the Nonce was used before"}


def test_a_misspelt_route_hears_which_there_are(service: Served) -> None:
    said = requests.get(f"{service.url}/api/chek-query", timeout=60)
    assert said.status_code == 404 and "did you mean /api/check-query?" in said.json()["detail"]
    assert "/openapi.json" in said.json()["detail"]
    wrong = requests.get(f"{service.url}/api/add-query", timeout=60)
    assert wrong.status_code == 405 and "it goes by POST" in wrong.json()["detail"]


def test_a_login_says_who_it_is(service: Served) -> None:
    assert service.user.get("login").json() == {"User": "User_1", "Role": "user"}


@pytest.mark.parametrize("path", ["/api/user-topics", "/v1/models", "/v1/chat/completions"])
def test_who_sends_no_key_or_a_wrong_one_hears_where_keys_come_from(service: Served, path: str) -> None:
    for key, says in (("", "no API key: send `Authorization: Bearer"), ("mtk-wrong", "wrong API key;")):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        method = "POST" if path.endswith("completions") else "GET"
        said = requests.request(method, service.url + path, headers=headers, json={}, timeout=60)
        text = said.json()["error"]["message"] if path.startswith("/v1") else said.json()["detail"]
        assert said.status_code == 401 and says.lower() in text.lower(), text
        assert "*API keys*" in text and "metatree service keys add NAME" in text


def test_roles_and_owners(service: Served) -> None:
    assert service.engine.ask("q").status_code == 403
    assert service.frontend.get("get-new-queries").status_code == 403
    assert service.user.ask("q", user="Somebody").status_code == 403
    assert service.user.ask("q", user="User_1").status_code == 200
    assert service.other_user.ask("q", user="User_2").status_code == 403, "the topic is another user's"
    assert service.other_user.get("get-topic-thread", Topic="T").status_code == 404
    assert service.other_user.get("check-query", Topic="T", Seq=1).status_code == 404
    assert service.user.get("get-topic-thread", Topic="T").status_code == 200
    assert service.frontend.get("get-topic-thread", Topic="T").status_code == 200
    assert service.frontend.get("get-topic-thread", Topic="T", OnBehalfOf="User_2").status_code == 404
    assert service.other_user.call("DELETE", "topic", OnBehalfOf="User_1", Topic="T").status_code == 403
    assert service.other_user.get("user-topics", OnBehalfOf="User_1").status_code == 403


def test_topics_are_open_to_others_where_sharing_is(serve: Serve) -> None:
    service = serve(shared=True)
    assert service.user.ask("q", user="User_1").status_code == 200
    assert service.other_user.ask("q2", user="User_2").json()["Seq"] == 2
    assert service.other_user.get("get-topic-thread", Topic="T").status_code == 200


def test_who_asks_in_a_shared_topic_uses_up_their_own_open_questions(serve: Serve) -> None:
    service = serve(shared=True, rates=Rates(open_queries=1))
    assert service.user.ask("q", user="User_1").status_code == 200
    assert service.other_user.ask("q", user="User_2").status_code == 200
    assert service.other_user.ask("q2", user="User_2").status_code == 429, "also in a topic of somebody else"
    service.engine.answer("q", "a", seq=1)
    assert service.user.ask("q2", user="User_1").status_code == 200, "not theirs, though in their topic"


# what requests may look like


def test_a_topic_with_plus_and_slash_works_encoded_and_as_naive_clients_send_it(service: Served) -> None:
    topic = "qSBb7/zY+hIN0"
    service.frontend.ask("q", topic=topic)
    service.frontend.ask("q", topic="with space")
    secret = SECRETS["Frontend_1"][1]
    for spelling in ("qSBb7%2FzY%2BhIN0", "qSBb7/zY+hIN0", "with+space", "with%20space"):
        pairs = "&".join(f"{name}={value}" for name, value in proof("Frontend_1", secret).items())
        found = requests.get(f"{service.url}/api/get-topic-thread?{pairs}&Topic={spelling}", timeout=60)
        assert found.status_code == 200, spelling


def test_get_with_a_body(service: Served) -> None:
    service.frontend.ask("q", topic=TOPIC)
    assert service.frontend.call("GET", "get-lookups", json={"Topic": TOPIC}).status_code == 200
    assert service.frontend.call("GET", "get-lookups", json={"Topic": TOPIC}, Topic=TOPIC).status_code == 200
    assert (
        service.frontend.call("GET", "get-lookups", json={"Topic": "other"}, Topic=TOPIC).status_code == 400
    )
    body = proof("Inference_1", SECRETS["Inference_1"][1])
    found = requests.get(f"{service.url}/api/get-new-queries", json=body, timeout=60)
    assert found.json()["Topic"] == TOPIC, "the proof may be in the body"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"[]", 422),
        (b'{"Topic": "T", "User": "U"}', 422),
        (b'{"Topic": "", "User": "U", "Query": "q"}', 422),
        (b'{"Topic": 5, "User": "U", "Query": "q"}', 422),
        (b'{"Topic": "T", "User": "U", "Query": "\\u0000"}', 422),
        (b'{"Topic": "T\\u0000", "User": "U", "Query": "q"}', 422),
        (b'{"Topic": "T", "User": "U", "Query": "\\ud800"}', 400),
        (b'{"Topic": "T", "User": "U", "Query": "' + b"q" * 100_001 + b'"}', 422),
        (b'{"Topic": "T", "User": "U", "Query": "' + b"q" * 2_000_001 + b'"}', 413),
    ],
)
def test_bad_bodies(service: Served, body: bytes, status: int) -> None:
    given = proof("Frontend_1", SECRETS["Frontend_1"][1])
    assert (
        requests.post(f"{service.url}/api/add-query", params=given, data=body, timeout=60).status_code
        == status
    )


def test_a_body_that_does_not_say_how_long_it_is_is_bounded_too(service: Served) -> None:
    given = proof("Frontend_1", SECRETS["Frontend_1"][1])
    chunks = (b"x" * 100_000 for _ in range(50))
    try:
        said = requests.post(f"{service.url}/api/add-query", params=given, data=chunks, timeout=60)
    except requests.ConnectionError:
        return  # cut off before all was sent
    assert said.status_code == 413


@pytest.mark.parametrize("seq", ["0", "-1", "x", "1.5", "9" * 30, "²"])
def test_a_number_that_is_none(service: Served, seq: str) -> None:
    service.frontend.ask("q")
    assert service.frontend.get("check-query", Topic="T", Seq=seq).status_code == 422
    assert service.frontend.get("check-query", Topic="T", Seq=9).status_code == 404
    assert service.frontend.get("check-query", Topic="other", Seq=1).status_code == 404


def test_a_zero_character_is_refused_and_kept_where_it_is_escaped(service: Served) -> None:
    service.frontend.ask("q")
    assert service.frontend.get("get-topic-thread", Topic="T\0").status_code == 400
    assert service.frontend.call("GET", "get-topic-thread", json={"Topic": "T\0"}).status_code == 400
    assert service.engine.answer("q", "zero \0", "all \x01 \ufffe").status_code == 200
    thread = service.frontend.get("get-topic-thread", Topic="T").json()
    assert thread[0]["Answer"] == ["zero \0", "all \x01 \ufffe"]


# answers


def test_the_first_answer_wins(service: Served) -> None:
    service.frontend.ask("q")
    service.engine.get("get-new-queries")
    assert service.engine.answer("q", "yes").status_code == 200
    assert service.engine.answer("q", "yes").status_code == 200
    assert service.other_engine.answer("q", "no").status_code == 409
    assert service.frontend.get("check-query", Topic="T", Seq=1).json()["Answer"] == ["yes"]


def test_another_number_is_matched_by_the_text_when_that_is_unique(service: Served) -> None:
    for text in ("a", "b", "b"):
        service.frontend.ask(text)
    service.engine.get("get-new-queries")
    assert service.engine.answer("a", "A", seq=3).status_code == 200
    assert service.engine.answer("b", "B", seq=1).status_code == 409
    assert service.engine.answer("b", "B", seq=2).status_code == 200
    assert service.engine.answer("c", "C", seq=9).status_code == 404
    thread = service.frontend.get("get-topic-thread", Topic="T").json()
    assert [one["Answer"] for one in thread] == [["A"], ["B"], None]


def test_a_lease_that_ended_gives_the_query_to_another_and_fails_it_in_the_end(serve: Serve) -> None:
    service = serve(lease_s=1.5, attempts=2, claim_timeout_s=60.0, answer_timeout_s=0.05)
    service.frontend.ask("q")
    assert service.engine.get("get-new-queries").json()["Topic"] == "T"
    assert service.other_engine.get("get-new-queries").json()["Topic"] == "T"
    assert service.frontend.get("check-query", Topic="T", Seq=1).json()["Status"] != "Failed"
    time.sleep(1.6)
    again = serve(lease_s=1.5, attempts=2)
    assert again.engine.get("get-new-queries").json() == {"Topic": None, "Queries": None}
    assert service.frontend.get("check-query", Topic="T", Seq=1).json()["Status"] == "Failed"
    assert service.engine.answer("q", "late").status_code == 200, "better late than never"


# waiting


def test_an_engine_that_waits_is_woken_by_a_query_also_of_another_process(serve: Serve) -> None:
    service, other = serve(claim_timeout_s=20.0), serve()
    for asking in (service, other):
        found: list[Any] = []
        waiting = threading.Thread(
            target=lambda found=found: found.append(service.engine.get("get-new-queries").json())
        )
        waiting.start()
        time.sleep(0.3)
        assert not found
        asking.frontend.ask("q", topic=asking.url)
        waiting.join(60)
        assert found and found[0]["Topic"] == asking.url


def test_a_caller_that_waits_is_woken_by_the_answer_also_of_another_process(serve: Serve) -> None:
    service, other = serve(answer_timeout_s=20.0), serve()
    for answering in (service, other):
        topic = answering.url
        service.frontend.ask("q", topic=topic)
        found: list[Any] = []
        waiting = threading.Thread(
            target=lambda t=topic, found=found: found.append(
                service.frontend.get("check-query", Topic=t, Seq=1).json()
            )
        )
        waiting.start()
        time.sleep(0.3)
        answering.engine.answer("q", "yes", topic=topic)
        waiting.join(60)
        assert found and found[0]["Answer"] == ["yes"]


def test_a_waiting_caller_is_notified_that_the_query_failed_also_by_another_process(serve: Serve) -> None:
    failing: dict[str, Any] = {"lease_s": 0.2, "attempts": 1, "claim_timeout_s": 1.0}
    service, other = serve(answer_timeout_s=25.0, **failing), serve(**failing)
    for engines in (service, other):
        topic, found = engines.url, list[Any]()
        service.frontend.ask("q", topic=topic)
        assert engines.engine.get("get-new-queries").json()["Topic"] == topic
        waiting = threading.Thread(
            target=lambda t=topic, found=found: found.append(
                service.frontend.get("check-query", Topic=t, Seq=1).json()
            )
        )
        waiting.start()
        assert engines.engine.get("get-new-queries").json()["Topic"] is None, "the lease ends meanwhile"
        waiting.join(60)
        assert found and found[0]["Status"] == "Failed"


def test_an_engine_that_is_no_user_any_more_is_given_nothing_though_it_waits(
    serve: Serve, place: Path | str
) -> None:
    service, found = serve(claim_timeout_s=20.0), list[int]()
    waiting = threading.Thread(target=lambda: found.append(service.engine.get("get-new-queries").status_code))
    waiting.start()
    time.sleep(0.3)
    take_out(place, "Inference_1")
    service.frontend.ask("q")
    waiting.join(60)
    assert found == [401]
    assert service.other_engine.get("get-new-queries").json()["Topic"] == "T"


def test_who_is_no_user_any_more_watches_no_longer(serve: Serve, place: Path | str) -> None:
    service = serve()
    service.user.ask("q", user="User_1")
    address = {**proof("User_1", SECRETS["User_1"][1]), "Topic": "T", "Seq": "1"}
    with requests.get(f"{service.url}/api/events", params=address, stream=True, timeout=120) as stream:
        time.sleep(0.3)
        take_out(place, "User_1")
        service.engine.get("get-new-queries")
        service.engine.answer("q", "a secret")
        assert "a secret" not in stream.text


def take_out(place: Path | str, name: str) -> None:
    async def once() -> None:
        database = opened(place)
        await database.start()
        await Users(database).remove(name)
        await database.close()

    asyncio.run(once())


def test_a_client_that_goes_away_takes_no_claim_with_it(serve: Serve) -> None:
    service = serve(claim_timeout_s=20.0)
    host, port = service.url.removeprefix("http://").split(":")
    for _ in range(5):
        pairs = "&".join(f"{k}={v}" for k, v in proof("Inference_1", SECRETS["Inference_1"][1]).items())
        with socket.create_connection((host, int(port))) as going:
            going.sendall(f"GET /api/get-new-queries?{pairs} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            time.sleep(0.05)
    time.sleep(0.2)
    service.frontend.ask("q")
    assert service.other_engine.get("get-new-queries").json()["Topic"] == "T"


def test_many_callers_at_once_get_dense_numbers(serve: Serve) -> None:
    service, other = serve(), serve()
    seqs: list[int] = []

    def ask(served: Served) -> None:
        for _ in range(10):
            seqs.append(served.frontend.ask("q").json()["Seq"])

    threads = [threading.Thread(target=ask, args=(one,)) for one in (service, other) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seqs) == list(range(1, 61))


def test_the_description_names_every_status_that_comes(service: Served) -> None:
    described = requests.get(f"{service.url}/openapi.json", timeout=60).json()
    routes = {
        ("get", "user-topics"), ("delete", "topic"), ("post", "add-query"), ("get", "check-query"),
        ("get", "get-topic-thread"), ("post", "add-lookup"), ("get", "get-lookups"), ("post", "recommend"),
        ("get", "login"), ("get", "get-new-lookup"), ("post", "give-new-matches"), ("get", "get-new-queries"),
        ("post", "give-new-answer"),
    }  # fmt: skip
    for method, name in routes:
        assert {"200", "400", "401", "403"} <= described["paths"][f"/api/{name}"][method][
            "responses"
        ].keys(), name


@pytest.mark.parametrize("blank", ["", "  \n", "\x07"])
def test_a_query_of_blanks_asks_nothing(service: Served, blank: str) -> None:
    said = service.frontend.post("add-query", {"Topic": "T", "User": "User_1", "Query": blank})
    assert said.status_code == 422


def test_events_that_come_to_no_end_end_after_a_while_and_go_on_in_another_stream(serve: Serve) -> None:
    service = serve(stream_s=0.0)
    service.user.ask("q", user="User_1")
    body = {"Topic": "T", "Seq": 1, "Steps": [{"Text": "looked"}]}
    assert service.engine.post("give-progress", body).status_code == 200
    said = service.user.get("events", Topic="T", Seq=1)
    assert said.status_code == 200 and "looked" in said.text and "event: answer" not in said.text
    assert said.text.endswith("\n\n"), "whole events alone"
