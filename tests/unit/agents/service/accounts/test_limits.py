"""Token buckets against what they promise, with a clock of the test's; who is counted, and who is not."""

from __future__ import annotations

import pytest
from fastapi import HTTPException
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.service.accounts.limits import _KEPT, Buckets, RateLimits, Rates
from metatree_agents.service.accounts.users import Caller
from starlette.requests import Request

USER, ENGINE = Caller("Ann", "user"), Caller("Inference_1", "engine")


def request() -> Request:
    return Request({"type": "http", "headers": [], "state": {}})


@given(waits=st.lists(st.floats(0, 5), max_size=60), rate=st.floats(0.1, 50), burst=st.integers(1, 20))
def test_never_more_than_the_burst_and_the_rate_and_a_refusal_says_when(
    waits: list[float], rate: float, burst: int
) -> None:
    now = 0.0
    buckets = Buckets(rate, burst, clock=lambda: now)
    taken = 0
    for wait in waits:
        now += wait
        until = buckets.take("Ann")
        taken += until == 0.0
        assert taken <= burst + now * rate + 1e-6
        if until:
            now += until * 1.000001 + 1e-9
            assert buckets.take("Ann") == 0.0, "after the time that it said"
            taken += 1
    assert buckets.take("Bob") == 0.0, "each has a bucket of its own"


def test_buckets_do_not_grow_without_bound() -> None:
    now = 0.0
    buckets = Buckets(1.0, 2.0, clock=lambda: now)
    for number in range(_KEPT):
        buckets.take(str(number))
    now = 10.0
    buckets.take("one more")
    assert len(buckets) == 1


def test_addresses_are_counted_by_network_and_loopback_is_not() -> None:
    limits = RateLimits(Rates(address_rate=1.0, address_burst=1.0), clock=lambda: 0.0)
    assert not limits.address("203.0.113.5")
    assert limits.address("203.0.113.5") == 1.0
    assert limits.address("::ffff:203.0.113.5") == 1.0
    assert not limits.address("203.0.113.6")
    assert not limits.address("2001:db8::1")
    assert limits.address("2001:db8::2"), "one customer has a /64"
    assert not limits.address("2001:db8:0:1::1")
    for _ in range(3):
        assert not limits.address("127.0.0.1")
        assert not limits.address("::1")
        assert not limits.address(None)


def test_a_user_is_refused_where_an_engine_is_not() -> None:
    refused: list[str] = []
    limits = RateLimits(Rates(user_rate=0.1, user_burst=2.0), clock=lambda: 0.0, refused=refused.append)
    for who, times in ((ENGINE, 10), (USER, 2)):
        for _ in range(times):
            limits.admit(request(), who)
    with pytest.raises(HTTPException) as failed:
        limits.admit(request(), USER)
    assert failed.value.status_code == 429
    assert failed.value.headers == {"Retry-After": "10"}
    assert refused == ["user"]


@pytest.mark.parametrize("who", [USER, ENGINE])
def test_requests_in_progress_are_counted_until_they_end(who: Caller) -> None:
    limits = RateLimits(Rates(connections=2, program_connections=2))
    first, second = request(), request()
    limits.admit(first, who)
    limits.admit(second, who)
    with pytest.raises(HTTPException):
        limits.admit(request(), who)
    first.state.release()
    limits.admit(request(), who)
    with pytest.raises(HTTPException):
        limits.admit(request(), who)


def test_unanswered_queries_are_bounded_for_users_alone() -> None:
    limits = RateLimits(Rates(open_queries=3))
    limits.admit_open(USER, 2)
    limits.admit_open(Caller("Frontend_1", "frontend"), 3)
    with pytest.raises(HTTPException):
        limits.admit_open(USER, 3)


def test_zero_is_no_limit() -> None:
    limits = RateLimits(Rates(0, 0, 0, 0, 0, 0, 0))
    for _ in range(100):
        limits.admit(request(), USER)
        assert not limits.address("203.0.113.5")
    limits.admit_open(USER, 1_000)
