"""What `make test-real` sets up is there."""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.real


def test_the_programs_are_there() -> None:
    assert shutil.which("git")
