"""Limits, figures, the log and the administrator's routes, over real HTTP."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from metatree_agents.service.accounts.limits import Rates
from metatree_agents.service.http.logs import logging_to
from metatree_agents.service.queue.recommendations import Recommendations

from .conftest import SECRETS, Client, Served, proof

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]


def key_of(service: Served, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.keys[user]}"}


# limits


def test_a_user_who_asks_too_fast_gets_the_time_to_retry(serve: Serve) -> None:
    service = serve(rates=Rates(user_rate=0.05, user_burst=2.0))
    for _ in range(2):
        assert service.user.get("login").status_code == 200
    refused = service.user.get("login")
    assert refused.status_code == 429 and 10 < int(refused.headers["Retry-After"]) <= 20
    chat = requests.get(f"{service.url}/v1/models", headers=key_of(service, "User_1"), timeout=120)
    assert chat.status_code == 429, "one bucket, whichever way a user comes"
    assert chat.json()["error"]["type"] == "rate_limit_error" and "Retry-After" in chat.headers
    for other in (service.other_user, service.engine, service.frontend, service.admin):
        assert other.get("login").status_code == 200


def test_an_address_that_asks_too_fast_is_refused_before_anything_else(serve: Serve) -> None:
    service = serve(rates=Rates(address_rate=0.05, address_burst=2.0))

    def get(address: str, route: str = "/healthz") -> requests.Response:
        headers = {"X-Forwarded-For": address}
        return requests.get(service.url + route, headers=headers, timeout=120)

    assert [get("203.0.113.5").status_code for _ in range(3)] == [200, 200, 429]
    refused = get("203.0.113.5", "/v1/models")
    assert refused.status_code == 429 and refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert get("203.0.113.6").status_code == 200
    assert all(requests.get(f"{service.url}/healthz", timeout=120).ok for _ in range(5)), "this machine"


def test_requests_in_progress_are_counted_until_their_answer(serve: Serve) -> None:
    service = serve(rates=Rates(connections=1), answer_timeout_s=20.0)
    service.user.ask("q", user="User_1")
    for _ in range(3):
        assert service.user.get("login").status_code == 200, "one after the other"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.user.get, "check-query", Topic="T", Seq=1)
        while service.admin.get("admin/overview").json()["Connected"]["Callers"] == 0:
            threading.Event().wait(0.02)
        assert service.user.get("login").status_code == 429
        assert service.other_user.get("login").status_code == 200
        service.engine.answer("q", "a")
        assert waiting.result().json()["Answer"] == ["a"]
    assert service.user.get("login").status_code == 200


def test_unanswered_queries_of_a_user_are_bounded(serve: Serve) -> None:
    service = serve(rates=Rates(open_queries=2))
    for number in range(2):
        assert service.user.ask(f"q{number}", user="User_1").status_code == 200
    refused = service.user.ask("q2", user="User_1")
    assert refused.status_code == 429 and "Retry-After" in refused.headers
    chat = requests.post(
        f"{service.url}/v1/chat/completions",
        json={"model": "metatree", "messages": [{"role": "user", "content": "q3"}]},
        headers=key_of(service, "User_1"),
        timeout=120,
    )
    assert chat.status_code == 429
    assert service.frontend.ask("q4", user="User_1").status_code == 200, "a frontend minds its users itself"
    service.engine.get("get-new-queries")
    for number in range(2):
        service.engine.answer(f"q{number}", "a", seq=number + 1)
    service.engine.answer("q4", "a", seq=3)
    assert service.user.ask("q5", user="User_1").status_code == 200


def test_every_route_refuses_a_body_that_is_too_large(service: Served) -> None:
    paths = requests.get(f"{service.url}/openapi.json", timeout=120).json()["paths"]
    assert len(paths) > 20
    for path, methods in paths.items():
        for method in methods:
            refused = requests.request(method, service.url + path, data=b"x" * 2_000_001, timeout=120)
            assert refused.status_code == 413, (method, path)
            assert ("error" in refused.json()) == path.startswith("/v1/")

    def parts() -> Any:
        for _ in range(300):
            yield b"x" * 10_000

    for path in ("/v1/chat/completions", "/api/add-query"):
        headers = {**key_of(service, "User_1")}
        params = proof("User_1", SECRETS["User_1"][1])
        said = requests.post(service.url + path, data=parts(), headers=headers, params=params, timeout=120)
        assert said.status_code == 413, "also when it does not say so at first"


def test_the_description_declares_every_status(service: Served) -> None:
    paths = requests.get(f"{service.url}/openapi.json", timeout=120).json()["paths"]
    for path, methods in paths.items():
        for method, said in methods.items():
            declared = set(said["responses"])
            assert "200" in declared
            if path == "/healthz":
                continue
            expected = {"401", "403", "429", "503"} | ({"413"} if method == "post" else set())
            assert expected <= declared, (method, path, expected - declared)


# figures


def figures(service: Served, **headers: str) -> dict[str, float]:
    said = requests.get(f"{service.url}/metrics", headers=headers, timeout=120)
    assert said.status_code == 200 and said.headers["content-type"].startswith("text/plain; version=")
    lines = [line for line in said.text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_every_reference_of_the_description_leads_somewhere(service: Served) -> None:
    described = requests.get(f"{service.url}/openapi.json", timeout=120).json()

    def references(part: Any) -> list[str]:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        own = [part["$ref"]] if isinstance(part, dict) and isinstance(part.get("$ref"), str) else []
        return own + [found for each in inner for found in references(each)]

    found = references(described)
    assert found, "there are some"
    for reference in found:
        at = described
        for name in reference.removeprefix("#/").split("/"):
            at = at[name]
    asked = described["paths"]["/api/ask-person"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    assert asked["properties"]["Questions"]["items"]["properties"]["Kind"]["enum"]


def test_figures_of_a_conversation(service: Served) -> None:
    service.frontend.ask("What is <b>secret</b>?", topic="private topic", user="Calico_Seders")
    service.frontend.ask("And then?", topic="private topic", user="Calico_Seders")
    service.frontend.ask("Other?", topic="second", user="Calico_Seders")
    before = figures(service)
    assert before['metatree_queries{state="open"}'] == 3
    assert before["metatree_oldest_open_seconds"] >= 0
    service.engine.get("get-new-queries")
    service.engine.answer("And then?", "x", topic="private topic", seq=2)
    requests.get(f"{service.url}/api/login?User=private_user", timeout=120)
    requests.get(f"{service.url}/private/path", timeout=120)
    found = figures(service)
    assert found['metatree_queries{state="open"}'] == found['metatree_queries{state="pending"}'] == 1
    assert (found["metatree_leases"], found["metatree_attempts_total"], found["metatree_answers_total"]) == (
        1,
        2,
        1,
    )
    assert found['metatree_requests_total{method="POST",route="/api/add-query",status="200"}'] == 3
    assert found['metatree_requests_total{method="GET",route="/api/login",status="401"}'] == 1
    assert found['metatree_requests_total{method="GET",route="none",status="404"}'] == 1
    assert found['metatree_request_seconds_count{route="/api/add-query"}'] == 3
    assert found['metatree_waiting{who="engines"}'] == 0
    text = "\n".join(found).lower()
    assert not any(word in text for word in ("private", "calico", "frontend_1", "inference", "127.0.0.1"))


def test_limits_are_counted(serve: Serve) -> None:
    service = serve(rates=Rates(user_rate=0.01, user_burst=1.0))
    service.user.get("login")
    service.user.get("login")
    assert figures(service)['metatree_rate_limited_total{limit="user"}'] == 1


def test_figures_are_for_this_machine_and_for_administrators(service: Served) -> None:
    url, through = f"{service.url}/metrics", {"X-Forwarded-For": "203.0.113.5"}
    assert requests.get(url, headers=through, timeout=120).status_code == 401
    assert requests.get(url, headers={"Via": "1.1 proxy"}, timeout=120).status_code == 401
    assert requests.get(url, headers={**through, **key_of(service, "User_1")}, timeout=120).status_code == 403
    assert (
        requests.get(url, headers={**through, **key_of(service, "Admin_1")}, timeout=120).status_code == 200
    )
    assert requests.get(url, headers={**through, "Authorization": "Bearer x"}, timeout=120).status_code == 401
    proven = proof("Admin_1", SECRETS["Admin_1"][1])
    assert requests.get(url, params=proven, headers=through, timeout=120).status_code == 200


# the administrator


def test_an_administrator_sees_and_mends_the_queue(serve: Serve) -> None:
    service = serve(attempts=1)
    service.frontend.ask("Held?", topic="held", user="John_Doe")
    assert service.engine.get("get-new-queries").json()["Topic"] == "held"
    service.frontend.ask("Open?", topic="open", user="John_Doe")
    seen = service.admin.get("admin/overview").json()
    assert (seen["Open"], seen["Pending"], seen["Failed"]) == (1, 1, 0)
    assert [(one["Query"], one["Status"], one["Attempts"], one["Engine"]) for one in seen["Queries"]] == [
        ("Held?", "Pending", 1, "Inference_1"),
        ("Open?", "Open", 0, None),
    ]
    (lease,) = seen["Leases"]
    assert (lease["Topic"], lease["Engine"], lease["Ended"]) == ("held", "Inference_1", False)
    assert lease["Since"] <= seen["At"] < lease["Until"]
    users = {one["Name"]: one for one in seen["Users"]}
    assert users["Inference_1"]["LastSeen"] is not None and users["User_2"]["LastSeen"] is None
    assert users["Inference_1"]["Keys"] == 1 and users["Inference_1"]["Role"] == "engine"
    assert not re.search("|".join(secret for _, secret in SECRETS.values()), json.dumps(seen))

    assert service.admin.post("admin/release", {"Topic": "held"}).status_code == 200
    assert service.admin.post("admin/release", {"Topic": "held"}).status_code == 404
    assert service.admin.get("admin/overview").json()["Failed"] == 1, "its only attempt is used up"
    assert service.admin.post("admin/requeue", {"Topic": "held", "Seq": 2}).status_code == 404
    assert service.admin.post("admin/requeue", {"Topic": "held", "Seq": 1}).json() == {"Requeued": 1}
    claimed = {service.other_engine.get("get-new-queries").json()["Topic"] for _ in range(2)}
    assert claimed == {"held", "open"}
    given = service.engine.answer("Held?", "late, and taken", topic="held")
    assert given.status_code == 200

    assert service.user.get("login").status_code == 200
    assert service.admin.post("admin/remove-user", {"Name": "User_1"}).status_code == 200
    assert service.user.get("login").status_code == 401
    chat = requests.get(f"{service.url}/v1/models", headers=key_of(service, "User_1"), timeout=120)
    assert chat.status_code == 401, "its keys end with it"
    assert service.admin.post("admin/remove-user", {"Name": "User_1"}).status_code == 404
    assert service.admin.post("admin/remove-user", {"Name": "Admin_1"}).status_code == 422


def test_a_query_whose_engine_vanished_is_shown_as_open_before_another_one_calls(serve: Serve) -> None:
    service = serve(lease_s=0.0)
    service.user.ask("q", user="User_1")
    assert service.engine.get("get-new-queries").json()["Topic"] == "T"
    assert service.user.get("check-query", Topic="T", Seq=1).json()["Status"] == "Open"
    assert [each["Status"] for each in service.user.get("get-topic-thread", Topic="T").json()] == ["Open"]
    found = service.admin.get("admin/overview").json()
    assert (found["Open"], found["Pending"], found["Queries"][0]["Status"]) == (1, 0, "Open")
    assert found["Leases"][0]["Ended"] and found["OldestOpenSeconds"] >= 0
    figures = requests.get(f"{service.url}/metrics", timeout=120).text
    assert 'metatree_queries{state="open"} 1.0' in figures and 'state="pending"} 0.0' in figures


def test_a_released_topic_wakes_an_engine_that_waits(serve: Serve) -> None:
    service = serve(claim_timeout_s=20.0)
    service.frontend.ask("x")
    first = service.engine.get("get-new-queries").json()
    assert service.admin.post("admin/release", {"Topic": "T"}).status_code == 200
    second = service.other_engine.get("get-new-queries").json()
    assert second["Topic"] == "T" and second["Lease"] != first["Lease"]
    renewed = service.engine.post("renew-lease", {"Topic": "T", "Lease": first["Lease"]})
    assert renewed.status_code == 409


@pytest.mark.parametrize("name", ["frontend", "user", "engine"])
def test_nobody_else_may_do_what_an_administrator_does(service: Served, name: str) -> None:
    who: Client = getattr(service, name)
    assert who.get("admin/overview").status_code == 403
    for route, body in (
        ("requeue", {"Topic": "T"}),
        ("release", {"Topic": "T"}),
        ("remove-user", {"Name": "User_2"}),
    ):
        assert who.post(f"admin/{route}", body).status_code == 403
        url = f"{service.url}/api/admin/{route}"
        assert requests.post(url, json=body, timeout=120).status_code == 401
        key = key_of(service, who.name)
        assert requests.post(url, json=body, headers=key, timeout=120).status_code == 403
    assert service.other_user.get("login").status_code == 200


# the log


def test_ids_of_requests_are_kept_when_they_are_ids(service: Served) -> None:
    def answered(given: str | None) -> str:
        headers = {} if given is None else {"X-Request-ID": given}
        return requests.get(f"{service.url}/healthz", headers=headers, timeout=120).headers["X-Request-ID"]

    assert answered("abc-1:2/3") == "abc-1:2/3"
    for wrong in ("a b", "x" * 129, "<script>", None):
        made = answered(wrong)
        assert re.fullmatch("[0-9a-f]{16}", made)
    refused = requests.get(f"{service.url}/api/login", headers={"X-Request-ID": "r9"}, timeout=120)
    assert (refused.status_code, refused.headers["X-Request-ID"]) == (401, "r9")


def test_a_whole_conversation_leaves_no_secret_in_the_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, sent = io.StringIO(), list[str]()
    real = requests.Session.send

    def send(self: requests.Session, request: requests.PreparedRequest, **given: Any) -> requests.Response:
        query = dict(
            part.split("=", 1) for part in (request.url or "").partition("?")[2].split("&") if "=" in part
        )
        sent.extend(value for name, value in query.items() if name in ("Nonce", "Hash"))
        return real(self, request, **given)

    async def failing(self: Recommendations, **given: Any) -> float:
        raise RuntimeError(f"no such thing at http://x/?User=u&Nonce={sent[-2]}&Hash={sent[-1]}")

    monkeypatch.setattr(requests.Session, "send", send)
    monkeypatch.setattr(Recommendations, "add", failing)
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)
    with logging_to("json", stream=stream, debug=True):
        service = serve()
        service.frontend.ask("What is it?", topic="T")
        service.engine.get("get-new-queries")
        service.engine.answer("What is it?", "That.")
        service.frontend.get("check-query", Topic="T", Seq=1)
        service.user.get("get-topic-thread", Topic="T")
        service.admin.get("admin/overview")
        wrong = {**proof("User_1", "w" * 24), "X": "\n\x00"}
        requests.get(
            f"{service.url}/api/login", params=wrong, cookies={"session": "cookie-" + "c" * 30}, timeout=30
        )
        body = {"Topic": "T", "OnBehalfOf": "a", "Query": "q", "Fragment": "f", "Type": "Promote Answer"}
        failed = service.frontend.post("recommend", body)
        assert failed.status_code == 500
        assert failed.json() == {
            "detail": f"something went wrong; the log has it by {failed.headers['X-Request-ID']}"
        }
        for key in (service.keys["User_1"], "mtk-" + "n" * 43):
            requests.get(f"{service.url}/v1/models", headers={"Authorization": f"Bearer {key}"}, timeout=120)
        requests.get(f"{service.url}/v1/{service.keys['User_2']}", timeout=120)
        # A line is written when its answer has gone out, which may be after it has come in.
        while '"route": "none"' not in stream.getvalue():
            threading.Event().wait(0.01)
    log = stream.getvalue()
    records = [json.loads(line) for line in log.splitlines()]
    told = [(one["route"], one["status"]) for one in records if "route" in one]
    assert ("/api/add-query", 200) in told and ("/v1/models", 401) in told and ("none", 404) in told
    (error,) = [one for one in records if one["level"] == "error"]
    assert error["request_id"] == failed.headers["X-Request-ID"] and "RuntimeError" in error["error"]
    assert {one["user"] for one in records if "user" in one} >= {"Frontend_1", "Inference_1", "User_1", None}
    secrets = [secret for _, secret in SECRETS.values()] + [*service.keys.values()]
    assert len(sent) >= 16
    for secret in (*secrets, *sent, "cookie-", "n" * 43):
        assert secret not in log
