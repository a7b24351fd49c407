"""The benchmarks of retrieval: scores, intervals, the wrong router, and a run over a small corpus."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.retrieval import report
from benchmarks.retrieval.collection import Collection
from benchmarks.retrieval.dataset import BASELINE, BESIDE, OURS, Corpus, Options, Outcome, Query
from benchmarks.retrieval.scores import interval, metric, values
from benchmarks.retrieval.sets import SETS
from benchmarks.retrieval.wrong import WrongRouter
from metatree import Node, Option, RouteDecision, RouteRequest

GOLD = frozenset({"a", "b"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [("R@1", 0.0), ("R@2", 0.5), ("Hit@2", 1.0), ("Acc@2", 0.0), ("Acc@3", 1.0), ("MRR", 0.5)],
)
def test_metrics_count_what_they_say(name: str, expected: float) -> None:
    assert metric(name, GOLD, ["x", "a", "b"]) == expected


def test_an_unknown_metric_is_an_error() -> None:
    with pytest.raises(ValueError, match="no metric"):
        metric("P@3", GOLD, ["a"])


def test_an_interval_holds_the_mean_and_narrows_with_more_questions() -> None:
    few, many = np.array([0.0, 1.0] * 10), np.array([0.0, 1.0] * 1_000)
    (low, high), (closer, farther) = interval(few), interval(many)
    assert low < closer < 0.5 < farther < high


class _First:
    async def route(self, request: RouteRequest) -> RouteDecision:
        return RouteDecision(request.options[0].id, {"c": "why not"}, "first")


@pytest.mark.parametrize(("rate", "wrong"), [(0.0, 0), (1.0, 100)])
def test_the_wrong_router_errs_at_its_rate(rate: float, wrong: int) -> None:
    request = RouteRequest(("q",), "", Node(id="n", title="n"), tuple(Option(i, i, "") for i in "abc"))

    async def choices() -> list[str | None]:
        router = WrongRouter(_First(), rate, "seed")
        return [(await router.route(request)).choice for _ in range(100)]

    assert sum(choice != "a" for choice in asyncio.run(choices())) == wrong


def _corpus(options: Options) -> Corpus:
    corpus = Corpus(
        [], {}, [Query("q", "Where are redirects followed?", frozenset({"d1"}))], accept=("page",)
    )
    for number, text in enumerate(
        ["Cookies are kept.", "Redirects are followed here.", "Errors are raised."]
    ):
        corpus.nodes.append((Node(id=f"d{number}", title=f"page {number}", content=text, kind="page"), "."))
        corpus.texts[f"d{number}"] = text
    return corpus


def test_a_run_ranks_by_both_systems_and_reports_both() -> None:
    benchmark = Collection("tiny", "", _corpus, ("R@1",), {"R@1": 0.9})
    outcomes = list(benchmark.outcomes(Options(Path())))
    assert outcomes[0].ranked[BASELINE][0] == "d1"
    assert outcomes[0].ranked[OURS][0] == "d1"
    (line,) = report.lines(benchmark, outcomes)
    assert line.split()[:6] == ["tiny", "1", "R@1", "1.000", "[1.000", "1.000]"]
    assert line.split()[-4:] == ["+0.000", "[+0.000", "+0.000]", "0.90"]
    assert "4 nodes built" in report.footnote(benchmark, outcomes)


def test_every_set_has_a_name_and_metrics_that_exist() -> None:
    for name, benchmark in SETS.items():
        assert benchmark.name == name
        assert set(benchmark.goals) <= set(benchmark.metrics)
        for each in benchmark.metrics:
            assert values(each, OURS, [Outcome("q", GOLD, {OURS: ["a", "b"]})]).min() >= 0


def test_what_is_offered_beside_counts_in_a_row_of_its_own() -> None:
    ranked = {BASELINE: ["x", "y", "a"], OURS: ["x", "a", "z"], BESIDE: ["b", "c"]}
    outcomes = [Outcome("q", GOLD, ranked, groups=("held out, 100K",))]
    assert list(values("R@2", OURS, outcomes)) == [0.5]
    assert list(values("R@2+1", OURS, outcomes)) == [1.0], "two found and one beside"
    assert list(values("R@2+1", BASELINE, outcomes)) == [0.5], "the first three"
    assert list(values("R@3-1", OURS, outcomes)) == [1.0], "two found and one beside: three in all"
    assert list(values("R@2-1", OURS, outcomes)) == [0.5], "one found, which is none, and one beside"
    assert list(values("R@2-1", BASELINE, outcomes)) == [0.0]
    found_too = Outcome("q", GOLD, {OURS: ["b", "a", "z"], BESIDE: ["b"]})
    assert list(values("R@2-1", OURS, [found_too])) == [1.0], "what is there already leaves the place"
    benchmark = Collection("tiny", "", _corpus, ("R@2", "R@2+1"), {})
    lines = list(report.lines(benchmark, outcomes))
    assert [line.split()[:3] for line in lines[:2]] == [["tiny", "1", "R@2"], ["tiny", "1", "R@2+1"]]
    assert [" ".join(line.split()[:5]) for line in lines[2:]] == [
        "held out, 100K 1 R@2",
        "held out, 100K 1 R@2+1",
    ]


def _beam(folder: Path) -> None:
    memory = folder / "memory"
    memory.mkdir()
    said = ["I keep bees.", "Bees are fine.", "Always name prices when I ask about honey.", "Yes."]
    turns = [
        {
            "id": f"beam-100K-1/M{number}",
            "conv": "beam-100K-1",
            "session": 1,
            "topic": number // 2,
            "date": "March-15-2024",
            "speaker": ("user", "assistant")[number % 2],
            "text": text,
        }
        for number, text in enumerate(said)
    ]
    with gzip.open(memory / "beam_turns.jsonl.gz", "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(turn) + "\n" for turn in turns)
    asked = {"conv": "beam-100K-1", "category": "instruction_following", "query": "What honey is there?"}
    rows = [
        {"id": "q0", "gold": ["beam-100K-1/M2"], **asked},
        {"id": "q1", "gold": [], **asked, "category": "abstention"},
    ]
    (memory / "beam.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_beam_is_read_with_its_halves_abilities_and_wishes(tmp_path: Path) -> None:
    _beam(tmp_path)
    (outcome,) = SETS["beam"].outcomes(Options(tmp_path))
    assert outcome.groups == (
        "looked at, all",
        "looked at, 100K",
        "looked at, instruction following",
    ), "a question that nothing answers is left out"
    assert outcome.ranked[BESIDE] == ["beam-100K-1/M2"]
