"""A service of an earlier release, opened by this one: everything is there, and goes on.

`releases/service-N.sql` and `.backup` were written by the release whose tables have version N, and are never changed;
a release that changes the tables adds its own.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.service.database.backup import restore
from metatree_agents.service.database.schema import SERVICE

from metatree.storage.acceptance import accept

from .conftest import Served, opened
from .test_web import entered

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]
RELEASES = Path(__file__).parent / "releases"
VERSIONS = sorted(int(file.stem.partition("-")[2]) for file in RELEASES.glob("*.sql"))


def made_by(version: int, file: Path) -> Path:
    """Make the database file that a release had."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((RELEASES / f"service-{version}.sql").read_text(encoding="utf-8"))
    accept(file, own=True)
    return file


def holds_all(service: Served) -> None:
    """Check what the fixture holds, and go on with it."""
    (lamps,) = service.user.get("get-topic-thread", Topic="lamps").json()
    assert (lamps["Status"], lamps["Answer"], lamps["End"]) == ("Done", ["nine watts"], "answered")
    assert lamps["Sources"][0]["Lines"] == [2, 2]
    (paid,) = service.user.get("get-topic-thread", Topic="pays").json()
    assert (paid["Status"], paid["Asked"][0]["Question"]) == ("Waiting", "Who pays the lamps?")
    (stopped,) = service.frontend.get("get-topic-thread", Topic="stopped").json()
    assert (stopped["Status"], stopped["End"]) == ("Stopped", "stopped")
    (kept,) = service.engine.get("get-recommendations", After="0").json()
    assert (kept["fragment"], kept["comment"], kept["withdraws"]) == ("nine watts", "seen", None)
    claimed = service.engine.get("get-new-queries").json()
    assert claimed["Topic"] == "open"
    assert service.engine.answer("And the garden?", "Dawn.", topic="open").status_code == 200
    assert (
        service.user.post("answer-question", {"Topic": "pays", "Seq": 1, "Answer": "Ann"}).status_code == 200
    )
    assert service.engine.get("get-new-queries").json()["Topic"] == "pays"
    again = {"Topic": "stopped", "Seq": 1, "OnBehalfOf": "John_Doe"}
    assert service.frontend.post("continue-query", again).status_code == 200
    browser = entered(service, "User_1")
    assert browser.send("/topic/rename", topic="lamps", title="The lamps").status_code == 303
    assert "The lamps" in browser.get("/topics").text and "nine watts" in browser.get("/memories").text
    assert browser.send("/memories/undo", number=str(kept["number"])).status_code == 303


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_an_earlier_release_is_brought_up_to_date(
    serve: Serve, tmp_path: Path, version: int
) -> None:
    assert version < SERVICE.version
    holds_all(serve(made_by(version, tmp_path / "old.db")))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_of_an_earlier_release_is_restored(serve: Serve, place: Path | str, version: int) -> None:
    async def restored() -> None:
        database = opened(place)
        await database.start()
        try:
            await restore(RELEASES / f"service-{version}.backup", database)
        finally:
            await database.close()

    asyncio.run(restored())
    holds_all(serve())


def test_there_is_a_fixture_of_the_release_before() -> None:
    """Whoever changes the tables keeps what the version before wrote."""
    assert VERSIONS and VERSIONS[-1] >= SERVICE.version - 1
