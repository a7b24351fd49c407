"""The self-test of a model: how it is counted, and where it ends."""

from __future__ import annotations

from metatree_routers import embedded_suite
from metatree_routers.self_test import MENUS, PASSAGES, self_test


def test_a_slow_model_is_asked_of_less() -> None:
    suite = embedded_suite()
    whole, cut = self_test(suite), self_test(suite, limit_s=0.0)
    assert (whole.of_menus, whole.of_passages) == (len(MENUS), len(PASSAGES))
    assert (cut.of_menus, cut.of_passages) == (2, 1)
    assert cut.menus <= 2 and cut.without <= 2 and cut.passages <= 1
    assert "of 2 menus" in cut.line() and "of 1 passages" in cut.line()
