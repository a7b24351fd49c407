"""The lines of docs/first-day.md, as an administrator runs them on the first day of a service."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.shell_reader import Reader, blocks_of

pytestmark = pytest.mark.integration
PAGE = Path(__file__).parents[3] / "docs" / "first-day.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_first_day_of_a_team_goes_as_the_page_says(tmp_path: Path) -> None:
    reader, printed = Reader(tmp_path), list[str]()
    try:
        for block in blocks_of(PAGE):
            came = reader.follow(block)
            assert all(status == 200 for status, _, _ in came)
            printed.append(reader.printed)
        said = reader.said.read_text()
    finally:
        reader.stop()
    assert "log in as admin with this link" in said and "only administrators may ask recipes" in said
    everything = "\n".join(printed)
    assert "30 days of holiday a year. [1]" in everything and "smoked paprika" in everything
    assert "carried over. [1]" in everything, "a server that runs has what was built again"
    assert "recipes  group:cooks" in everything and "/login#code=" in everything
    assert "the memory of handbook" in everything and "the memory of recipes" in everything
    assert "metatree_engines 1.0" in (tmp_path / "figures.txt").read_text()
    with closing(sqlite3.connect(tmp_path / ".metatree" / "service.db")) as database:
        assert database.execute("SELECT count(*) FROM topic WHERE owner = 'Ann'").fetchone() == (0,)
