"""Leases that are renewed by a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from metatree.durable.renewal import SHARE, Renewal
from metatree.errors import LeaseLost, TransientError


class Waits:
    """Goes on at once as often as it was told to, and remembers for how long it was to wait."""

    def __init__(self, count: int) -> None:
        self.asked: list[float] = []
        self.ended = threading.Event()
        self._left = count

    def __call__(self, seconds: float) -> bool:
        self.asked.append(seconds)
        self._left -= 1
        if self._left < 0:
            self.ended.set()
        return self._left < 0


def renewed(waits: Waits, renew: Callable[[], object]) -> list[str]:
    """Renew as often as it waits; return `lost` once for each time that this was said."""
    losses: list[str] = []

    def lost() -> None:
        losses.append("lost")
        waits.ended.set()

    with Renewal(renew, every_s=20.0, lost=lost, wait=waits):
        assert waits.ended.wait(20)
    return losses


def test_a_lease_is_renewed_at_every_turn_until_the_block_ends() -> None:
    calls: list[str] = []
    waits = Waits(3)
    assert renewed(waits, lambda: calls.append(threading.current_thread().name)) == []
    assert calls == ["metatree-lease"] * 3
    assert waits.asked == [20.0] * 4


def test_a_renewal_that_fails_for_now_is_tried_again_soon() -> None:
    calls: list[int] = []

    def renew() -> None:
        calls.append(len(calls))
        if len(calls) == 2:
            raise TransientError("the server is away")

    waits = Waits(4)
    assert renewed(waits, renew) == []
    assert len(calls) == 4
    assert waits.asked == [20.0, 20.0, 4.0, 20.0, 20.0]


def test_a_lease_that_somebody_else_has_is_said_once_and_renewed_no_more() -> None:
    calls: list[int] = []

    def renew() -> None:
        calls.append(0)
        raise LeaseLost("r")

    assert renewed(Waits(3), renew) == ["lost"]
    assert calls == [0]


@pytest.mark.parametrize("every_s", [0.0, 0.001])
def test_a_lease_of_no_length_keeps_no_processor_busy(every_s: float) -> None:
    waits = Waits(1)
    with Renewal(lambda: None, every_s=every_s, lost=lambda: None, wait=waits):
        assert waits.ended.wait(20)
    assert waits.asked == [0.01, 0.01]


def test_nothing_is_renewed_after_the_block() -> None:
    started, go_on, calls = threading.Event(), threading.Event(), list[str]()

    def renew() -> None:
        started.set()
        go_on.wait(20)
        raise LeaseLost("r")  # since it was let go of

    with Renewal(renew, every_s=0.0, lost=lambda: calls.append("lost")) as renewal:
        assert started.wait(20)
    go_on.set()
    renewal.join()
    assert calls == []


def test_a_lease_outlives_a_renewal_that_fails() -> None:
    """It is renewed after a third, and what fails is tried again long before the end."""
    lease_s, failed = 60.0, list[float]()
    waits = Waits(2)

    def renew() -> None:
        failed.append(sum(waits.asked))
        raise TransientError("the server is away")

    with Renewal(renew, every_s=lease_s / SHARE, lost=lambda: None, wait=waits):
        assert waits.ended.wait(20)
    assert failed == [20.0, 24.0]
