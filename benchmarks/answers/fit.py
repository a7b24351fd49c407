"""Fit the ranker and the claim model on the own set, and report them on sets that they were not fitted on.

`python -m benchmarks.answers.fit --work DIR [--write]` takes the sources that `python -m benchmarks.answers` has
fetched. What it prints comes from models fitted with one set left out at a time, both of them: the sets are by
different hands, and what is left out source by source promises more than questions of other hands keep. What it writes
is fitted on all, each source with the same weight. `DIR/rows` keeps the candidates of each source as long as the code
that finds them is the same, so that a second fit takes a minute.

The claim model is also fitted on small trees: a few lines each of one to eight passages of a source, as the only
texts that there are, with and without the one that answers. Without those it claims nothing in trees of a few short
notes, and what it says of large ones is less true too (calibration error .10 instead of .08). Lost: every question
once more without the passages that answer it; claims are fewer, and likelier to be right than they say.
"""

from __future__ import annotations

import argparse
import pickle
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from metatree_routers import TextEvidence
from metatree_routers.embedded._excerpt import shown
from metatree_routers.embeddings.static import static_embedder
from metatree_routers.passages import ranking
from metatree_routers.passages.asked import Asked, read_question
from metatree_routers.passages.candidates import KEPT, Text, candidates_of, weigh
from metatree_routers.passages.features import FEATURES, PassageCandidate, features
from metatree_routers.passages.ranking import best_apart, claim_features, joined
from metatree_routers.query.terms import term_counts

from benchmarks.answers.dataset import Question, QuestionSet, digest, ready
from benchmarks.answers.scoring import Passed, is_right
from benchmarks.answers.sets import OWN, SHARED, load
from metatree.node import Node
from metatree.protocols import SURE
from metatree.searches._questions import split_questions

MOST = 220
"""Questions of a set."""
RANKER_L2, CLAIM_L2 = 30.0, 3.0
WRONG_WEIGHT, SMALL_WEIGHT = 0.3, 0.25
"""Of a question to a wrong source, and to a small tree, in the fit of the claim model: there are more of either than of
questions as they are asked."""
LEAST_OF_SOURCE = 5
"""Questions; a source with fewer counts less than others."""
INNER = 4
"""Parts of the training sources, for scores of the ranker that it was not fitted on."""
SMALL_TREES = 2
"""Small trees of each question, of either kind."""
SMALL_SIZES = (1, 2, 3, 5, 8)
SMALL_LINES = (1, 1, 2, 3, 6)

Floats = npt.NDArray[np.float64]


@dataclass
class Row:
    """A question with its candidates."""

    set: str
    source: str
    own: str
    """The source that it was written for."""
    asked: Asked
    answerable: bool
    features: Floats
    right: npt.NDArray[np.bool_]
    question: Question
    candidates: list[PassageCandidate]
    texts: dict[str, Text]
    """Their nodes."""
    weights: dict[str, float]
    """Of the question's terms."""
    is_small: bool = False
    share: float = 1.0
    """Of how likely it is: half in a language that no text is in, as `TextEvidence.passages` has it."""


def rows(names: Sequence[str], data: Path | None, work: Path, limit: int) -> Iterator[Row]:
    """Yield the questions of some sets, and those that are answered once more, asked of another source."""
    # All that finds candidates; not the numbers that a fit writes.
    parts = Path(ranking.__file__).parents[1]
    code = digest(path.read_text() for path in sorted(parts.rglob("*.py")) if path.name != "_model.py")
    for name in names:
        asked = load(name, data, work)
        step = max(1, len(asked.questions) // limit)
        questions = [part for question in asked.questions[::step] for part in _parts(question)]
        for source, where in asked.sources.items():
            key = digest([code, where.key, repr(questions)])[:12]
            place = work / "rows" / f"{name}-{source}-{key}.pickle"
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(pickle.dumps(list(_rows(asked, source, questions, work))))
            yield from pickle.loads(place.read_bytes())


def _parts(question: Question) -> list[Question]:
    """Return the questions that `ask` makes of one, each with what answers it."""
    texts = split_questions(question.text)
    if not question.parts or len(texts) != len(question.parts):
        return [question]
    return [
        replace(question, id=f"{question.id}/{number}", text=text, pattern=pattern, parts=())
        for number, (text, pattern) in enumerate(zip(texts, question.parts, strict=True))
    ]


def _rows(asked: QuestionSet, source: str, questions: Iterable[Question], work: Path) -> Iterator[Row]:
    embedder = static_embedder()
    with ready(asked.sources[source], source, work, lambda tree: None) as tree:
        evidence = TextEvidence(tree)
        for question in questions:
            own = question.source == source
            if not own and not (question.answerable and asked.other(question.source) == source):
                continue
            note = evidence.note(question.text)
            taken = read_question((note and note.read_as) or question.text)
            weights = weigh(taken, *evidence.document_frequencies(taken.weights))
            texts = list(evidence.texts(question.text))
            candidates = candidates_of(taken, texts, weights, embedder)
            nodes = {candidate.node for candidate in candidates}
            yield Row(
                asked.name,
                source,
                question.source,
                taken,
                question.answerable and own,
                features(taken, candidates, weights, embedder),
                _right(question, candidates, {text.node.id: text for text in texts}, own),
                question,
                candidates,
                {text.node.id: text for text in texts if text.node.id in nodes},
                weights,
                share=0.5 if note and note.language else 1.0,
            )


def _right(
    question: Question, candidates: Sequence[PassageCandidate], texts: dict[str, Text], own: bool = True
) -> npt.NDArray[np.bool_]:
    wanted = question.answerable and own
    return np.array([wanted and _is_right(question, each, texts) for each in candidates], dtype=bool)


def _is_right(question: Question, candidate: PassageCandidate, texts: dict[str, Text]) -> bool:
    """Whether what is shown of a candidate is right."""
    passage = best_apart([(candidate, 1.0)], 1, texts, {})[0]
    text = texts[candidate.node]
    answer = shown(text.node, text.content, passage.text.strip("\n"), passage.release)
    return is_right(question, [Passed(answer, (candidate.node,))])


def small_trees(given: Sequence[Row]) -> Iterator[Row]:
    """Yield the questions again, asked of a few short texts out of their candidates, with and without a right one."""
    chance = random.Random(7)
    embedder = static_embedder()
    for row in given:
        if row.source != row.own:
            continue
        right = [each for each, is_right in zip(row.candidates, row.right, strict=True) if is_right][:5]
        wrong = [each for each, is_right in zip(row.candidates, row.right, strict=True) if not is_right]
        for number in range(2 * SMALL_TREES):
            answers = bool(number % 2)
            picked = [_shortened(chance.choice(right), row.question, chance)] if answers and right else []
            among = wrong if chance.random() < 0.5 else wrong[:10]
            more = min(len(among), chance.choice(SMALL_SIZES) - len(picked))
            picked += [_shortened(each, None, chance) for each in chance.sample(among, more)]
            if not picked or (answers and not right):
                continue
            texts = [
                replace(each, node=f"{each.node}#{at}", leads=each.leads if chance.random() < 0.5 else ())
                for at, each in enumerate(picked)
            ]
            few = {each.node: Text(Node(id=each.node, title=each.title), each.text) for each in texts}
            terms = [term_counts(f"{each.text} {each.head}").keys() for each in texts]
            df = {term: sum(term in each for each in terms) for term in row.asked.weights}
            weights = weigh(row.asked, df, len(texts))
            cover = [sum(weight for term, weight in weights.items() if term in each) for each in terms]
            best = max(cover) or 1.0
            texts = [replace(each, evidence=have / best) for each, have in zip(texts, cover, strict=True)]
            yield replace(
                row,
                answerable=answers,
                features=features(row.asked, texts, weights, embedder),
                right=_right(row.question, texts, few, answers),
                candidates=texts,
                texts=few,
                weights=weights,
                is_small=True,
            )


def _shortened(
    candidate: PassageCandidate, question: Question | None, chance: random.Random
) -> PassageCandidate:
    """Return a few lines of a passage as a text; those that answer the question, if there is one."""
    lines = candidate.text.split("\n")
    for size in sorted(chance.sample(SMALL_LINES, 3)):
        for first in chance.sample(range(len(lines)), len(lines)):
            text = "\n".join(lines[first : first + size]).strip("\n")
            short = replace(candidate, start=0, first=0, last=text.count("\n"), text=text)
            if len(text.split()) >= 4 and (
                question is None or is_right(question, [Passed(short.text, (short.node,))])
            ):
                return short
    return replace(candidate, start=0, first=0, last=len(lines) - 1)


def fit_ranker(given: Sequence[Row]) -> Floats:
    """Return weights of the features: cross entropy over each list that has a right and a wrong passage."""
    lists = [row for row in given if row.right.any() and not row.right.all()]
    matrix = np.vstack([row.features for row in lists])
    right = np.concatenate([row.right for row in lists])
    by_source = weight_of_sources(given)
    counts = np.array([by_source[row.source] for row in lists])
    scale = matrix.std(axis=0) + 1e-6
    matrix = matrix / scale
    sizes = np.array([len(row.right) for row in lists])
    first = np.cumsum(sizes) - sizes
    of = np.repeat(np.arange(len(lists)), sizes)

    def slope(weights: Floats) -> Floats:
        scores = matrix @ weights
        share = np.exp(scores - np.maximum.reduceat(scores, first)[of])
        wanted = share * right
        error = share / np.add.reduceat(share, first)[of] - wanted / np.add.reduceat(wanted, first)[of]
        return np.asarray((RANKER_L2 * weights + matrix.T @ (counts[of] * error)) / len(lists))

    return np.asarray(_descend(slope, len(FEATURES)) / scale)


def weight_of_sources(given: Sequence[Row]) -> dict[str, float]:
    """Return how much each question of a source counts, so that all sources count the same; 1 on average."""
    asked = Counter(row.source for row in given if row.source == row.own and not row.is_small)
    most = len(asked) and sum(asked.values()) / len(asked)
    return {row.source: most / max(asked[row.source], LEAST_OF_SOURCE) for row in given}


def fit_claim(matrix: Floats, right: Floats, counts: Floats) -> tuple[Floats, float]:
    """Return weights and bias of a logistic regression; `counts` says how much each row does."""
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
    standard = np.hstack([(matrix - mean) / scale, np.ones((len(matrix), 1))])
    penalty = np.array([CLAIM_L2] * matrix.shape[1] + [0.0])

    def slope(weights: Floats) -> Floats:
        p = 1.0 / (1.0 + np.exp(-standard @ weights))
        return np.asarray((standard.T @ (counts * (p - right)) + penalty * weights) / counts.sum())

    weights = _descend(slope, matrix.shape[1] + 1)
    return weights[:-1] / scale, float(weights[-1] - (weights[:-1] / scale) @ mean)


def _descend(slope: Any, size: int, steps: int = 400, rate: float = 0.05) -> Floats:
    """Minimise by Adam (Kingma, Ba 2015): smooth and convex, so that any method comes to the same."""
    weights, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, steps + 1):
        at = slope(weights)
        mean, square = 0.9 * mean + 0.1 * at, 0.99 * square + 0.01 * at * at
        weights = weights - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def best_of(row: Row, ranker: Floats) -> tuple[Floats, bool]:
    """Return the claim features of what the ranker puts first, and whether what is then shown is right."""
    scores = row.features @ ranker
    order = np.argsort(-scores, kind="stable")
    ordered = [row.candidates[number] for number in order]
    best = joined(ordered, row.texts[ordered[0].node])
    is_right = bool(row.right[order[0]]) or (
        best is not ordered[0] and bool(row.right.any()) and _is_right(row.question, best, row.texts)
    )
    return claim_features(row.asked, ordered, row.features[order], scores[order]), is_right


def claims_of(given: Sequence[Row], sources: Sequence[str]) -> tuple[Floats, Floats, Floats]:
    """Return claim features, each by a ranker fitted on other sources, what was right, and how much each counts."""
    matrix, right, counts = [], [], []
    by_source = weight_of_sources(given)
    for part in range(INNER):
        held = set(sources[part::INNER])
        ranker = fit_ranker([row for row in given if row.source not in held and not row.is_small])
        for row in given:
            if row.source in held and len(row.features):
                best, is_right = best_of(row, ranker)
                matrix.append(best)
                right.append(is_right)
                wrong = WRONG_WEIGHT if row.source != row.own else 1.0
                counts.append(by_source[row.source] * (SMALL_WEIGHT if row.is_small else wrong))
    return np.array(matrix), np.array(right, dtype=float), np.array(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of `python -m benchmarks.answers`")
    parser.add_argument("--data", type=Path, help="folder of the sets of others, which are fitted on too")
    # Only sets of others: the held-out ones are never read here.
    parser.add_argument(
        "--sets", nargs="*", choices=tuple(SHARED), default=["qasper", "locomo"], help="those sets"
    )
    parser.add_argument(
        "--leave-out", choices=("set", "source"), default="set", help="what the report leaves out at a time"
    )
    parser.add_argument("--write", action="store_true", help="write the numbers into the package")
    options = parser.parse_args()
    given = list(rows(tuple(OWN), None, options.work, MOST))
    given += rows(options.sets if options.data else (), options.data, options.work, MOST)
    small = list(small_trees(given))
    sources = sorted({row.source for row in given})
    judged: list[tuple[float, bool, Row]] = []
    for left_out in OWN if options.leave_out == "set" else sorted({r.source for r in given if r.set in OWN}):
        train = [row for row in (*given, *small) if left_out not in (row.set, row.source, row.own)]
        ranker = fit_ranker([row for row in train if not row.is_small])
        claim, bias = fit_claim(*claims_of(train, sorted({row.source for row in train})))
        for row in given:
            if left_out in (row.set, row.source):
                best, is_right = best_of(row, ranker) if len(row.features) else (np.zeros(len(claim)), False)
                p = 1.0 / (1.0 + np.exp(-(best @ claim + bias))) if len(row.features) else 0.0
                judged.append((row.share * float(p), is_right, row))
    for named in (tuple(OWN), *((name,) for name in OWN)):
        print(" ".join(named))
        report([one for one in judged if one[2].set in named])
    report_kinds([one for one in judged if one[2].set in OWN])
    if options.write:
        claim, bias = fit_claim(*claims_of([*given, *small], sources))
        write(fit_ranker(given), claim, bias)


def report(judged: list[tuple[float, bool, Row]]) -> None:
    """Print precision and false claims at some coverages."""
    asked = [one for one in judged if one[2].own == one[2].source]
    wrong = [one for one in judged if one[2].own != one[2].source]
    answerable = sum(row.answerable for _, _, row in asked)
    absent = len(asked) - answerable
    first = sum(right for _, right, _ in asked) / answerable
    known = sum(row.right.any() for _, _, row in asked) / answerable
    print(
        f"{answerable} answerable, {absent} absent; right in {KEPT} candidates {known:.3f}, first {first:.3f}"
    )
    print("| coverage | precision | false claims | claims of a wrong source | threshold |")
    print("|---|---|---|---|---|")
    asked.sort(key=lambda one: -one[0])
    right = false = 0
    targets = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
    for number, (p, hit, row) in enumerate(asked, start=1):
        right += hit
        false += not row.answerable
        while targets and right / answerable >= targets[0]:
            elsewhere = sum(other >= p for other, _, _ in wrong) / len(wrong)
            print(
                f"| {targets.pop(0)} | {right / number:.2f} | {false / absent:.2f} | {elsewhere:.3f} | {p:.2f} |"
            )
    for sure in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8):
        claims = [one for one in asked if one[0] >= sure]
        hits = sum(hit for _, hit, _ in claims)
        print(
            f"at {sure}: precision {hits / max(1, len(claims)):.2f}, coverage {hits / answerable:.2f},"
            f" false claims {sum(not row.answerable for _, _, row in claims) / absent:.2f}"
        )
    bins = np.array_split(np.array([[p, float(hit)] for p, hit, _ in asked]), 10)
    error = sum(len(part) * abs(part[:, 0].mean() - part[:, 1].mean()) for part in bins) / len(asked)
    print(f"calibration error {error:.3f}")


def report_kinds(judged: list[tuple[float, bool, Row]]) -> None:
    """Print by kind where answers are lost: among the candidates, in their order, and in what is claimed."""
    print("| kind | answerable | among the candidates | first | right claims | false claims |")
    print("|---|---|---|---|---|---|")
    asked = [one for one in judged if one[2].own == one[2].source]
    for kind in sorted({row.question.kind for _, _, row in asked}):
        of_kind = [one for one in asked if one[2].question.kind == kind]
        answerable = [one for one in of_kind if one[2].answerable]
        claims = [one for one in of_kind if one[0] >= SURE]
        known, first = sum(row.right.any() for *_, row in answerable), sum(hit for _, hit, _ in answerable)
        false = sum(not row.answerable for *_, row in claims)
        print(
            f"| {kind} | {len(answerable)} | {known} | {first} | {sum(hit for _, hit, _ in claims)}/{len(claims)}"
            f" | {false}/{len(of_kind) - len(answerable)} |"
        )


def write(ranker: Floats, claim: Floats, bias: float) -> None:
    """Write the numbers into `metatree_routers.passages._model`."""

    def listed(values: Floats) -> str:
        return ", ".join(f"{value:.4g}" for value in values)

    path = Path(ranking.__file__).with_name("_model.py")
    text = path.read_text(encoding="utf-8")
    text = re.sub(
        r"(RANKER: Final = )np\.\w+\(.*?\)\n\"",
        rf'\g<1>np.array([{listed(ranker)}])\n"',
        text,
        flags=re.DOTALL,
    )
    text = re.sub(
        r"(CLAIM: Final = )np\.\w+\(.*?\)\n\"", rf'\g<1>np.array([{listed(claim)}])\n"', text, flags=re.DOTALL
    )
    text = re.sub(r"BIAS: Final = .*", f"BIAS: Final = {bias:.4g}", text)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
