"""The self-test of a model: how it is counted, and where it ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from metatree_routers import embedded_suite
from metatree_routers.self_test import MENUS, PASSAGES, self_test

from metatree import RouteDecision, RouteRequest
from metatree.errors import BadModelAnswer
from metatree.protocols import Router, Traits


def test_a_slow_model_is_asked_of_less() -> None:
    suite = embedded_suite()
    whole, cut = self_test(suite), self_test(suite, limit_s=0.0)
    assert (whole.of_menus, whole.of_passages) == (len(MENUS), len(PASSAGES))
    assert (cut.of_menus, cut.of_passages) == (2, 1)
    assert cut.menus <= 2 and cut.without <= 2 and cut.passages <= 1
    assert "of 2 menus" in cut.line() and "of 1 passages" in cut.line()


def test_a_model_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metatree_routers.self_test.LEAST_S", 0.1)

    class Hangs(Router):
        traits = Traits(uses_model=True)

        async def route(self, request: RouteRequest) -> RouteDecision:
            await asyncio.sleep(600)
            raise AssertionError("nobody waits for it")

    with pytest.raises(BadModelAnswer, match="it is too slow: it answered no menu in"):
        self_test(replace(embedded_suite(), router=Hangs()), limit_s=0.1)
