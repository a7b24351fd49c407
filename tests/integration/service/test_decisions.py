"""The decisions on what the wire format's page leaves open, row by row: which tests hold each, and those that are
nowhere else."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.service.accounts.users import Proofs, Users
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.settings import ServiceSettings
from metatree_memory_tools import build_tree

from metatree import Tree
from metatree.errors import UserError
from metatree.notes.notes import remember

from .conftest import SECRETS, Served, proof
from .test_engine import tree, working  # noqa: F401  # a fixture

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]

ROWS = {
    "example hash": [
        "test_decisions.test_the_printed_example_of_a_hash",
        "test_wire.test_the_documented_hash_is_right_and_the_one_with_a_newline_only_where_it_is_allowed",
    ],
    "nonces": [
        "test_decisions.test_of_many_who_send_the_same_proof_at_once_one_is_let_in",
        "test_decisions.test_a_nonce_stays_used_after_a_restart",
        "test_wire.test_a_nonce_is_accepted_once_also_by_another_process_and_never_burnt_by_others",
        "test_wire.test_wrong_credentials_are_all_the_same",
    ],
    "fingerprint": [
        "test_wire.test_lookups",
        "test_decisions.test_a_lookup_is_made_again_when_the_index_has_changed",
        "test_decisions.test_an_engine_tells_that_its_index_has_changed",
    ],
    "GET with a body": ["test_wire.test_get_with_a_body"],
    "401, 403, 404": [
        "test_wire.test_roles_and_owners",
        "test_wire.test_bad_bodies",
        "test_wire.test_a_number_that_is_none",
        "test_wire.test_a_whole_conversation",
    ],
    "Queries item": [
        "test_wire.test_a_whole_conversation",
        "test_seed_only.test_a_whole_conversation_of_two_processes_that_know_only_the_page",
    ],
    "Pending to Open": [
        "test_decisions.test_the_defaults",
        "test_wire.test_a_lease_that_ended_gives_the_query_to_another_and_fails_it_in_the_end",
    ],
    "late and repeated answers": [
        "test_wire.test_the_first_answer_wins",
        "test_wire.test_another_number_is_matched_by_the_text_when_that_is_unique",
        "test_decisions.test_a_late_answer_counts_unless_another_was_given_under_a_newer_lease",
    ],
    "Seq": ["test_wire.test_many_callers_at_once_get_dense_numbers"],
    "waiting": [
        "test_decisions.test_the_defaults",
        "test_wire.test_an_engine_that_waits_is_woken_by_a_query_also_of_another_process",
        "test_wire.test_a_caller_that_waits_is_woken_by_the_answer_also_of_another_process",
    ],
    "Topic with + /": [
        "test_wire.test_a_topic_with_plus_and_slash_works_encoded_and_as_naive_clients_send_it"
    ],
    "roles": [
        "test_decisions.test_a_role_is_what_was_configured_whatever_the_name",
        "test_wire.test_roles_and_owners",
    ],
    "topics and users": [
        "test_wire.test_roles_and_owners",
        "test_wire.test_topics_are_open_to_others_where_sharing_is",
    ],
    "recommend types": ["test_wire.test_recommend_takes_the_documented_types"],
    "timestamps": ["test_decisions.test_times_are_those_of_utc"],
    "secrets": ["test_decisions.test_a_secret_has_128_bits_or_more"],
    "modifiers and models": [
        "test_engine.test_a_category_narrows_the_search",
        "test_decisions.test_a_region_narrows_the_search_and_an_unknown_model_is_the_default",
    ],
    "lookups": [
        "test_engine.test_lookups_are_answered_nearest_first_within_the_threshold",
        "test_decisions.test_matches_are_as_documented",
    ],
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_has_its_tests(row: str) -> None:
    for name in ROWS[row]:
        module, _, function = name.partition(".")
        assert callable(getattr(importlib.import_module(f"tests.integration.service.{module}"), function)), (
            name
        )


def test_the_printed_example_of_a_hash(tmp_path: Path) -> None:
    """Its token is too short for `Users.add`, so it is put into the table as an old service would have had it."""

    async def verified(digest: str, proofs: Proofs) -> bool:
        database = SqliteDatabase.open(":memory:")
        async with database.transaction() as do:
            await do.execute(
                "INSERT INTO service_user(name, role, secret, made_at) VALUES (?, 'engine', ?, 0)",
                *("Inference_1", "7b18d017f89f61cf17d"),
            )
        found = await Users(database, proofs).verified("Inference_1", "PSjUAS82NcDKgwXq", digest)
        await database.close()
        return found is not None

    canonical, printed = (
        "d3dd6832c72b5c8f4cf194bcb85e67d81e5dcd93",
        "3f71f8a88e09b52f7ff6c73aa96826558b302d32",
    )
    assert asyncio.run(verified(canonical, Proofs()))
    assert asyncio.run(verified(canonical.upper(), Proofs()))
    assert not asyncio.run(verified(canonical, Proofs(sha1=False)))
    assert not asyncio.run(verified(printed, Proofs()))
    assert asyncio.run(verified(printed, Proofs(newline=True)))


def test_of_many_who_send_the_same_proof_at_once_one_is_let_in(serve: Serve) -> None:
    services, given = (serve(), serve()), proof("User_1", SECRETS["User_1"][1])
    statuses: list[int] = []

    def log_in(service: Served) -> None:
        statuses.append(requests.get(f"{service.url}/api/login", params=given, timeout=120).status_code)

    threads = [threading.Thread(target=log_in, args=(service,)) for service in services * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [401] * 15


def test_a_nonce_stays_used_after_a_restart(place: Path | str) -> None:
    from .conftest import served

    given = proof("User_1", SECRETS["User_1"][1])
    statuses = []
    for _ in range(2):
        with served(place, ServiceSettings()) as service:
            statuses.append(requests.get(f"{service.url}/api/login", params=given, timeout=120).status_code)
    assert statuses == [200, 401]


def lookups(service: Served) -> list[dict[str, list[str]]]:
    found: list[dict[str, list[str]]] = service.frontend.get("get-lookups", Topic="T").json()["Lookups"][0][
        "Fragments"
    ]
    return found


def test_a_lookup_is_made_again_when_the_index_has_changed(service: Served) -> None:
    service.frontend.ask("q")
    wish = {"Topic": "T", "Seq": 1, "Fragment": "comp time"}

    def made(index: str, *matches: str) -> int:
        service.frontend.post("add-lookup", wish)
        wanted = service.engine.get("get-new-lookup", Index=index)
        if wanted.status_code == 200:
            body = {"Fingerprint": wanted.json()["Fingerprint"], "Matches": matches}
            assert service.engine.post("give-new-matches", body).status_code == 200
        return wanted.status_code

    assert service.engine.get("get-new-lookup", Index="1").status_code == 404
    assert made("1", "an early one") == 200
    assert made("1") == 404, "the same lookup in the same state was made already"
    assert made("2") == 404, "the service hears of the change with this call"
    assert lookups(service) == [{"comp time": ["an early one"]}]
    assert made("2", "a later one") == 200
    assert lookups(service) == [{"comp time": ["a later one"]}], "it takes the place of the earlier one"
    assert service.engine.get("get-new-lookup", Index="x" * 201).status_code == 422


def test_an_engine_tells_that_its_index_has_changed(service: Served, tree: Tree) -> None:  # noqa: F811
    service.frontend.ask("q")
    wish = {"Topic": "T", "Seq": 1, "Fragment": "The walrus weighs parcels.", "Count": 1}
    with working(service, tree):
        assert until(service, wish, lambda text: "walrus" not in text)
        remember(tree, "The walrus weighs parcels.")
        assert until(service, wish, lambda text: "walrus" in text), lookups(service)


def until(service: Served, wish: dict[str, Any], right: Callable[[str], bool]) -> bool:
    """Ask for a lookup until the text of its first match is right; say whether it ever was."""
    for _ in range(2_000):
        service.frontend.post("add-lookup", wish)
        matches = lookups(service)[0][wish["Fragment"]]
        if matches and right(matches[0].partition("\n.....\n")[2]):
            return True
    return False


def test_the_defaults() -> None:
    settings = ServiceSettings()
    assert (settings.lease_s, settings.attempts) == (60.0, 5)
    assert (settings.claim_timeout_s, settings.answer_timeout_s) == (55.0, 55.0)
    assert (settings.shared, settings.proofs) == (False, Proofs(sha1=True, newline=False))


def test_a_late_answer_counts_unless_another_was_given_under_a_newer_lease(serve: Serve) -> None:
    service = serve(lease_s=0.1, claim_timeout_s=5.0)
    for topic in ("one", "two"):
        service.frontend.ask("q", topic=topic)
        assert service.engine.get("get-new-queries").json()["Topic"] == topic
        assert service.other_engine.get("get-new-queries").json()["Topic"] == topic, "open again, and claimed"
        if topic == "two":
            assert service.other_engine.answer("q", "newer", topic=topic).status_code == 200
        assert service.engine.answer("q", "late", topic=topic).status_code == (200 if topic == "one" else 409)
    assert service.frontend.get("check-query", Topic="one", Seq=1).json()["Answer"] == ["late"]


def test_a_role_is_what_was_configured_whatever_the_name(serve: Serve, place: Path | str) -> None:
    from .conftest import Client, opened

    service = serve()

    async def add() -> tuple[str, str]:
        database = opened(place)
        await database.start()
        made = (
            await Users(database).add("Inference_9", "user"),
            await Users(database).add("Frontend_9", "engine"),
        )
        await database.close()
        return made

    user, engine = asyncio.run(add())
    assert Client(service.url, "Inference_9", user).get("get-new-queries").status_code == 403
    assert Client(service.url, "Inference_9", user).ask("q", user="Inference_9").status_code == 200
    assert Client(service.url, "Frontend_9", engine).get("get-new-queries").json()["Topic"] == "T"
    assert Client(service.url, "Frontend_9", engine).ask("q").status_code == 403


def test_times_are_those_of_utc(service: Served) -> None:
    said = datetime.fromisoformat(service.frontend.ask("q").json()["Timestamp"]).replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - said) < timedelta(seconds=60)


def test_a_secret_has_128_bits_or_more(tmp_path: Path) -> None:
    async def add(secret: str | None) -> str:
        database = SqliteDatabase.open(":memory:")
        try:
            return await Users(database).add("Ann", "user", secret=secret)
        finally:
            await database.close()

    made = {asyncio.run(add(None)) for _ in range(20)}
    assert len(made) == 20 and min(map(len, made)) >= 22
    with pytest.raises(UserError, match="22 characters"):
        asyncio.run(add("04EMG47U62bjoyL3"))


def test_a_region_narrows_the_search_and_an_unknown_model_is_the_default(
    serve: Serve,
    tree: Tree,  # noqa: F811
) -> None:
    service = serve(answer_timeout_s=20.0)
    asked: dict[str, Any] = {
        "Modifiers": {"Region": "Shipping", "Category": [], "TBD": {"a": 1}},
        "Model": "no-such-model",
    }
    assert service.frontend.ask("What percent is the discount rate?", **asked).status_code == 200
    with working(service, tree):
        said = service.frontend.get("check-query", Topic="T", Seq=1).json()
    assert said["Sources"][0]["Path"] == "shipping/rates.py"
    assert service.frontend.ask("q", Model="x" * 201).status_code == 422


@pytest.mark.parametrize(("count", "threshold"), [(1, 2.0), (3, 2.0), (50, 2.0), (50, 0.8), (50, 0.0)])
def test_matches_are_as_documented(tmp_path: Path, count: int, threshold: float) -> None:
    """At most `Count`, within `Threshold`, nearest first; lines of metadata, a line of five dots, the text."""
    from metatree_agents.service.engine.nearest import matches_of

    place = tmp_path / "contracts"
    place.mkdir()
    texts = [
        f"Overtime work in shop {n} shall be distributed equitably.\n\n.....\n\nEven on day {n}."
        for n in range(9)
    ]
    for number, text in enumerate([*texts, "Employees can accrue comp time.", "Dues are paid monthly."]):
        (place / f"contract {number}.txt").write_text(text)
    with build_tree(place) as made:
        found = [
            match
            for _, match in matches_of(
                made, "Employees can accrue comp time for overtime work", count, threshold
            )
        ]
        assert len(found) == count if count <= 3 else len(found) <= count
        distances = []
        for match in found:
            head, dots, text = match.partition("\n.....\n")
            assert dots and text.strip()
            known = dict(line.split(": ", 1) for line in head.split("\n"))
            assert next(iter(known)) == "Distance" and {"Title", "Path", "Node"} <= known.keys()
            assert text == made.content(known["Node"])
            distances.append(float(known["Distance"]))
        assert distances == sorted(distances)
        assert all(distance <= threshold + 5e-5 for distance in distances)
        assert found == [] or "comp time" in found[0].partition("\n.....\n")[2]
