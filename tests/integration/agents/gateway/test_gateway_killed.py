"""A gateway that is killed during calls: nothing is made twice, and nothing is said to be done that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak_gateway import soak

pytestmark = pytest.mark.integration


def test_no_call_is_made_twice_when_gateways_are_killed(tmp_path: Path) -> None:
    """`make soak-gateway` does it with 20 servers and 200 calls."""
    outcome = soak(tmp_path, servers=3, calls=30, kills=2, seed=7)
    assert (outcome.kills, outcome.twice, outcome.missing, outcome.open) == (2, [], [], 0)
    assert outcome.done + outcome.unknown == 30 and outcome.done >= 1
