"""Tests with real programs, servers and files of others; `make test-real` gets them. All are marked `real`."""

from __future__ import annotations

from pathlib import Path

import pytest

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
"""Pictures of the web page, for people to look at; git ignores the folder."""
FOLDER = Path(__file__).parents[2] / ".venv-real"


@pytest.fixture(scope="session")
def real_files() -> Path:
    """The folder with the files of others, one folder for each Debian package that `.ci/real` names in FILES."""
    found = FOLDER / "files"
    if not found.is_dir():
        pytest.fail("the files are not there: run `make test-real`")
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the pictures are."""
    pictures = sorted(SCREENSHOTS.glob("*.png"))
    if pictures:
        terminalreporter.write_line(f"{len(pictures)} pictures of the web page are in {SCREENSHOTS}")
