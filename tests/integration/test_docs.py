"""What docs/histories.md says is what happens."""

import doctest
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from metatree_agents.service.http import bodies

pytestmark = pytest.mark.integration

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_on_the_command_line_has_both_names_of_a_switch() -> None:
    assert "`--history, --no-history`" in (DOCS / "cli.md").read_text(encoding="utf-8")


def test_the_page_on_json_has_the_users() -> None:
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    assert "## `metatree service users add --json`" in page
    assert "## `metatree service users list --json`" in page


def test_the_page_on_the_service_has_every_type_of_recommendation() -> None:
    page = (DOCS / "service.md").read_text(encoding="utf-8")
    kinds = get_args(get_type_hints(bodies.Recommend)["Type"])
    assert len(kinds) == 6
    assert all(f"`{kind}`" in page for kind in kinds)
    assert "joined by single spaces" in page


def test_the_examples_of_the_page_on_histories_run() -> None:
    result = doctest.testfile(str(DOCS / "histories.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
