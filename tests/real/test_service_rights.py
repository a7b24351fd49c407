"""A role of PostgreSQL that may not make schemas: it is told what to run before a tree is built, and that is enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from metatree_agents.cli._main import run

from tests.integration.agents.test_cli_serving import ended, start, until
from tests.real.postgres import Server, serving

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        with psycopg.connect(running.address(), autocommit=True) as connection:
            connection.execute('CREATE ROLE "ann-b" LOGIN')
        yield running


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "lamps.md").write_text("# Lamps\n\nA lamp in the hall has a bulb of nine watts.\n")
    return tmp_path / "house"


def said(capfd: pytest.CaptureFixture[str], source: Path, place: str) -> str:
    """Return what `metatree serve` says as it refuses."""
    assert run(["serve", "--source", str(source), "--database", place, "--port", "0"]) == 2
    return capfd.readouterr().err


@pytest.mark.parametrize("there", ["nothing", "the first schema", "schemas without rights"])
def test_what_an_administrator_has_to_run_is_said_before_a_build_and_is_enough(
    server: Server, source: Path, capfd: pytest.CaptureFixture[str], there: str
) -> None:
    schema = "s_" + there.replace(" ", "_")
    place = f"{server.address(user='ann-b')}&schema={schema}"
    with psycopg.connect(server.address(), autocommit=True) as connection:
        if there == "the first schema":
            connection.execute(f'CREATE SCHEMA "{schema}" AUTHORIZATION "ann-b"')
        elif there == "schemas without rights":
            connection.execute(f'CREATE SCHEMA "{schema}"')
            connection.execute(f'CREATE SCHEMA "{schema}_runs"')
        error = said(capfd, source, place)
        assert not (source / ".metatree").exists(), "a tree was built first"
        sql = re.findall(r"(?:CREATE SCHEMA|GRANT)[^;]*;", error)
        assert len(sql) == (1 if there == "the first schema" else 2), error
        for statement in sql:
            connection.execute(statement.encode())
    process = start("serve", "--source", str(source), "--database", place, "--port", "0")
    try:
        assert until(process, r"listening on (http://127\.0\.0\.1:\d+)")
    finally:
        ended(process)


def test_commands_on_the_database_say_it_too(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    place = f"{server.address(user='ann-b')}&schema=other"
    assert run(["service", "users", "add", "Ann", "--database", place]) == 2
    assert 'run there: CREATE SCHEMA "other" AUTHORIZATION "ann-b";' in capfd.readouterr().err
