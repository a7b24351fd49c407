"""Work in threads: who cancels it is heard inside a computation, too."""

from __future__ import annotations

import signal
import threading

import pytest

from metatree._util.threads import check_cancelled, run_apart

MOST = 30_000_000


def test_an_interrupt_ends_a_computation_that_looks() -> None:
    turns: list[int] = []
    caller = threading.get_ident()

    async def compute() -> None:
        signal.pthread_kill(caller, signal.SIGINT)
        for turn in range(MOST):
            turns[:] = [turn]
            check_cancelled()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_apart(compute)
    finally:
        signal.signal(signal.SIGINT, before)
    assert turns[0] < MOST - 1


def test_nothing_is_cancelled_outside_of_work_of_ours() -> None:
    check_cancelled()
