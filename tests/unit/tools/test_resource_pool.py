"""What tools keep open for the length of a search."""

from __future__ import annotations

import threading

import pytest

from metatree.tools.resource_pool import held, holding


class Thing:
    """Something that is opened and closed."""

    def __init__(self) -> None:
        self.usable = True
        self.closed = 0

    def close(self) -> None:
        self.usable = False
        self.closed += 1


@pytest.fixture
def made() -> list[Thing]:
    return []


def _make(made: list[Thing]) -> Thing:
    made.append(Thing())
    return made[-1]


def test_a_search_shares_what_is_open_and_closes_it(made: list[Thing]) -> None:
    with holding():
        with held("a", lambda: _make(made)) as first, held("a", lambda: _make(made)) as second:
            assert first is second
        with held("b", lambda: _make(made)) as other:
            assert other is not first
        assert [thing.closed for thing in made] == [0, 0]
    assert [thing.closed for thing in made] == [1, 1]


def test_outside_of_a_search_each_opens_its_own(made: list[Thing]) -> None:
    for _ in range(2):
        with pytest.raises(ValueError), held("a", lambda: _make(made)):
            raise ValueError
    assert [thing.closed for thing in made] == [1, 1]


def test_what_broke_is_opened_again(made: list[Thing]) -> None:
    with holding():
        with held("a", lambda: _make(made)) as first:
            first.usable = False
        with held("a", lambda: _make(made)) as second:
            assert second is not first
    assert [thing.closed for thing in made] == [1, 1]


def test_a_search_inside_a_search_uses_what_is_open(made: list[Thing]) -> None:
    with holding():
        with held("a", lambda: _make(made)):
            pass
        with holding(), held("a", lambda: _make(made)) as inner:
            assert inner is made[0]
        assert made[0].closed == 0


def test_one_that_cannot_be_closed_does_not_keep_the_others_open(made: list[Thing]) -> None:
    class Stuck(Thing):
        def close(self) -> None:
            raise OSError("stuck")

    with holding():
        with held("stuck", Stuck):
            pass
        with held("a", lambda: _make(made)):
            pass
    assert made[0].closed == 1


def test_a_thread_that_comes_late_leaves_nothing_open(made: list[Thing]) -> None:
    import contextvars

    with holding():
        context = contextvars.copy_context()

    def late() -> None:
        with held("a", lambda: _make(made)):
            pass

    thread = threading.Thread(target=context.run, args=(late,))
    thread.start()
    thread.join()
    assert made[0].closed == 1
