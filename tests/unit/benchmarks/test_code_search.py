"""The metric of code search: the first result in the file of a target counts, once, and its lines where wanted."""

from __future__ import annotations

import math

from benchmarks.code_search import Found, ndcg

TARGET = [Found("src/a.py", (10, 20))]


def test_the_rank_of_the_first_result_in_the_file_counts() -> None:
    found = [Found("src/b.py"), Found("repo/src/a.py", (1, 5)), Found("src/a.py", (15, 30))]
    assert ndcg(found, TARGET, spans=False) == 1 / math.log2(3)
    assert ndcg(found, TARGET, spans=True) == 1 / math.log2(4)
    assert ndcg([Found("src/aa.py"), Found("a.py/x")], TARGET, spans=False) == 0


def test_several_targets_share_the_ideal_and_repetitions_gain_nothing() -> None:
    targets = [Found("a.py"), Found("b.py")]
    ideal = 1 + 1 / math.log2(3)
    assert ndcg([Found("a.py"), Found("a.py"), Found("b.py")], targets, spans=True) == (1 + 0.5) / ideal
    assert ndcg([Found("b.py"), Found("a.py")], targets, spans=True) == 1
    assert ndcg([Found("x.py")] * 10 + [Found("a.py")], targets, spans=False) == 0
