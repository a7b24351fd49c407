"""What docs/histories.md says is what happens."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

DOCS = Path(__file__).parents[2] / "docs"


def test_the_examples_of_the_page_on_histories_run() -> None:
    result = doctest.testfile(str(DOCS / "histories.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
