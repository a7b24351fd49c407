"""Which committed line a present line is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.git import _show

LINES = st.lists(st.sampled_from(["", "}", "a", "b", "c", "d", "e"]), max_size=12)


@given(LINES, LINES)
def test_lines_that_come_often_are_compared_in_order_too(then: list[str], now: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_show, "_MOST_PAIRS", -1)
        found = _show._places(then, now)
    assert all(then[a - 1] == now[b - 1] for b, a in found.items())
    ordered = sorted(found.items())
    assert [a for _, a in ordered] == sorted(found.values()) and len(set(found.values())) == len(found)
    if then == now:
        assert found == {line: line for line in range(1, len(now) + 1)}


def test_a_change_in_a_file_of_many_blank_lines_is_the_only_new_line() -> None:
    then = [each for number in range(2_000) for each in (f"line {number}", "", "}")]
    now = [*then[:3_000], "new", *then[3_000:]]
    found = _show._places(then, now)
    assert set(range(1, len(now) + 1)) - set(found) == {3_001}
    assert found[3_000] == 3_000 and found[3_002] == 3_001


@pytest.mark.parametrize("many", [5_000, 30_000])
def test_lines_that_are_all_the_same_are_compared_at_once(many: int) -> None:
    """Quadratic at each of thousands of steps is hours: this does not end, rather than fail."""
    then = ["x"] * many
    now = [each for number in range(many // 2) for each in ("x", f"y{number}")]
    assert _show._places(then, now)[1] == 1
    assert len(_show._places([f"z{number % 40}" for number in range(many)], then)) == 0
