"""What speaks for a passage: some forty numbers for each of a question's candidates, computed together.

All are shares or logarithms, so that they mean the same in a small tree and in a large one. Those that gain most are
kept; docs/benchmarks/answers.md has what each group carries.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metatree_routers.embeddings.static import Embedder
from metatree_routers.passages.asked import Asked
from metatree_routers.query.terms import expand, raw_tokens

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with its place."""

    node: str
    title: str
    """Of its node."""
    about: str
    """What else its node is called: its path, its description's first words."""
    start: int
    end: int
    first: int
    last: int
    """Lines of the node's content, from 0."""
    leads: tuple[str, ...]
    text: str
    is_code: bool
    evidence: float
    """Of its node, in [0, 1]."""


_DATE = re.compile(
    r"\b(?:19|20)\d\d\b|\b\d{1,2}[-./](?:\d{1,2}|[A-Z][a-z]{2})[-./]\d{2,4}\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}\b|\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
)
_FULL_NAME = re.compile(r"\b[A-Z][a-zé-]+ (?:[A-Z]\. )?[A-Z][a-zé-]+\b|@\w+|\bauthor|\bthank", re.I | 0)
_PERSON = re.compile(r"\b[A-Z][a-zàèéíóöüäßš'-]+ (?:[A-Z]\. |van |von |de )?[A-Z][a-zàèéíóöüäßš'-]+\b|<[\w.+-]+@[\w.-]+>|(?<!\S)@\w+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_VERSION = re.compile(r"\bv?\d+\.\d+(?:\.\d+)*\b")
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|``[^`\n]+``")
_NAME = re.compile(r"\b(?:def|class|function|struct|const|var|let)\s+\w+|\b[a-z]+_\w+\b|\b[A-Z][a-z]+[A-Z]\w+|\w+\(\)")
_HOW = re.compile(r"\b(?:use|set|run|call|pass|install|type|add|specify|you can|to \w+,|must|should)\b|\$ |>>> |::", re.I)
_WHY = re.compile(r"\b(?:because|since|so that|in order to|reason|therefore|to avoid|due to)\b", re.I)
_DEFAULT = re.compile(r"\bdefaults?\b|\bnone is\b|\botherwise\b|\bif (?:not|no|omitted|unset)\b|\w=\S", re.I)
_DEFINES = re.compile(r"\b(?:is|are|means|stands for|returns?|represents?|refers to|specif\w+|contains?|holds?)\b", re.I)
_NEGATED = re.compile(r"\b(?:not|no|never|without|cannot|can't|doesn't|don't)\b", re.I)

WANTED: Mapping[str, re.Pattern[str]] = {
    "when": _DATE,
    "version": _VERSION,
    "amount": _NUMBER,
    "who": _PERSON,
    "code": _NAME,
    "option": _OPTION,
    "default": _DEFAULT,
    "how": _HOW,
    "why": _WHY,
}

FEATURES = (
    "cover", "cover_place", "cover_best", "cover_lead", "cover_title", "heaviest_missing", "missing_heavy",
    "bm25", "bm25_best", "window", "window_best", "pairs", "pairs_place",
    "exact", "exact_place", "exact_missing", "names_node", "starts_with", "key_missing", "name_missing",
    "cosine", "cosine_best", "cosine_lead", "cosine_line", "soft", "soft_best",
    "wanted", "wanted_near", "defines", "code_wanted", "default_wanted", "is_code", "length", "short",
    "evidence", "evidence_best", "rank", "number_missing", "question_in", "distinct",
    "assigned", "test", "head", "lead_exact", "pos",
)  # fmt: skip


def _share(weights: Mapping[str, float], present: set[str], total: float) -> float:
    return sum(weights[term] for term in present if term in weights) / total if total else 0.0


def weigh(asked: Asked, df: Mapping[str, int], n: int) -> dict[str, float]:
    """Weigh the question's terms by how rare they are in the tree; unknown ones weigh as much as the rarest."""
    return {
        term: weight / 3.0 * math.log1p((n - df.get(term, 0) + 0.5) / (df.get(term, 0) + 0.5))
        for term, weight in asked.weights.items()
    }


class Scorer:
    """Computes the features of a question's candidates.

    Args:
        asked: the question.
        df: in how many nodes each term of the question is.
        n: how many nodes there are.
        embedder: for nearness in meaning; None for words alone.
    """

    def __init__(self, asked: Asked, df: Mapping[str, int], n: int, embedder: Embedder | None) -> None:
        self.asked = asked
        self.df = df
        self.weights = weigh(asked, df, n)
        self.total = sum(self.weights.values())
        self.embedder = embedder

    def features(self, candidates: Sequence[Candidate]) -> Floats:
        """Return (n, len(FEATURES))."""
        asked, weights, total = self.asked, self.weights, self.total
        rows: list[dict[str, float]] = []
        heaviest = max(weights, key=lambda term: weights[term], default=None)
        lengths = [len(raw_tokens(c.text)) for c in candidates]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        for c, length in zip(candidates, lengths, strict=True):
            tokens = [(raw, expand(raw)) for raw in raw_tokens(c.text)]
            counts = Counter(term for _, terms in tokens for term in terms if term in weights)
            here = set(counts)
            lead_text = " ".join(c.leads)
            lead = {t for raw in raw_tokens(lead_text) for t in expand(raw)}
            title = {t for raw in raw_tokens(c.title) for t in expand(raw)}
            place = here | lead | title | {t for raw in raw_tokens(c.about) for t in expand(raw)}
            row = dict.fromkeys(FEATURES, 0.0)
            row["cover"] = _share(weights, here, total)
            row["cover_place"] = _share(weights, place, total)
            row["cover_lead"] = _share(weights, lead, total)
            row["cover_title"] = _share(weights, title, total)
            if heaviest is not None:
                row["heaviest_missing"] = float(heaviest not in place)
            row["missing_heavy"] = max((weights[t] for t in weights if t not in place), default=0.0) / (max(weights.values(), default=1.0) or 1.0)
            norm = 1.2 * (0.25 + 0.75 * length / mean)
            row["bm25"] = sum(weights[t] * f * 2.2 / (f + norm) for t, f in counts.items()) / (total or 1.0)
            row["window"] = self._window(tokens)
            order = [terms[-1] for _, terms in tokens if terms]
            pairs = set(zip(order, order[1:])) | set(zip(order, order[2:]))
            placed = pairs | _pairs(lead_text) | _pairs(c.title)
            if asked.pairs:
                row["pairs"] = len(asked.pairs & pairs) / len(asked.pairs)
                row["pairs_place"] = len(asked.pairs & placed) / len(asked.pairs)
            if asked.exact:
                whole = f"{c.text}\n{lead_text}\n{c.title}"
                row["exact"] = sum(_has(c.text, one) for one in asked.exact) / len(asked.exact)
                row["exact_place"] = sum(_has(whole, one) or _has(c.about, one) for one in asked.exact) / len(asked.exact)
                row["exact_missing"] = 1.0 - row["exact_place"]
                row["names_node"] = float(any(_same(one, c.title) for one in asked.exact))
                row["starts_with"] = float(any(_has(c.text[:60], one) for one in asked.exact))
            strong = [word for word in asked.key_terms if word.weight >= 1.6]
            if strong:
                row["key_missing"] = sum(w.weight for w in strong if not w.is_in(place)) / sum(w.weight for w in strong)
                row["name_missing"] = float(any(not w.is_in(place) for w in strong))
            numbers = [t for t in asked.weights if t.isdigit()]
            row["number_missing"] = float(any(t not in place for t in numbers))
            pattern = WANTED.get(asked.kind)
            if pattern is not None:
                hits = [m.start() for m in pattern.finditer(c.text)]
                own = [h for h in hits if c.text[h : h + 40].split()[0].lower().strip(",.;") not in asked.text.lower()] if hits else []
                row["wanted"] = float(bool(own))
                row["wanted_near"] = self._near(c.text, own)
            row["defines"] = float(asked.kind == "what" and bool(_DEFINES.search(c.text[:300])))
            row["code_wanted"] = float(asked.kind == "code" and c.is_code)
            row["default_wanted"] = float(bool(re.search("default|nothing|unless", asked.text, re.I)) and bool(_DEFAULT.search(c.text)))
            row["is_code"] = float(c.is_code)
            row["length"] = math.log1p(length) / 6
            row["short"] = float(length < 12)
            row["evidence"] = c.evidence
            row["question_in"] = float(c.text.rstrip().endswith("?"))
            row["distinct"] = min(len(here), 8) / 8
            row["assigned"] = float(any(_assigns(c.text, one) for one in asked.exact))
            row["test"] = float(bool(_TEST.search(c.node)))
            head = {t for raw in raw_tokens("\n".join(c.text.split("\n")[:2])) for t in expand(raw)}
            row["head"] = _share(weights, head, total)
            row["lead_exact"] = float(any(_has(lead_text, one) or _has(c.text.split("\n")[0], one) for one in asked.exact))
            row["pos"] = 1.0 / (1.0 + c.first / 10)
            rows.append(row)
        if not rows:
            return np.zeros((0, len(FEATURES)))
        self._add_meaning(rows, candidates)
        matrix = np.array([[row[name] for name in FEATURES] for row in rows])
        for best, of in (("cover_best", "cover_place"), ("bm25_best", "bm25"), ("window_best", "window"), ("cosine_best", "cosine"), ("soft_best", "soft"), ("evidence_best", "evidence")):
            values = matrix[:, FEATURES.index(of)]
            top = values.max()
            matrix[:, FEATURES.index(best)] = values / top if top > 0 else 0.0
        by_bm25 = np.argsort(-matrix[:, FEATURES.index("bm25")], kind="stable")
        ranks = np.empty(len(rows))
        ranks[by_bm25] = 1.0 / (1.0 + np.arange(len(rows)))
        matrix[:, FEATURES.index("rank")] = ranks
        return matrix

    def _window(self, tokens: list[tuple[str, tuple[str, ...]]], size: int = 30) -> float:
        """Return the largest share of the question in `size` tokens in a row."""
        weights = self.weights
        at = [(i, [t for t in terms if t in weights]) for i, (_, terms) in enumerate(tokens)]
        at = [(i, terms) for i, terms in at if terms]
        best = 0.0
        for k, (i, _) in enumerate(at):
            seen: set[str] = set()
            for j, terms in at[k:]:
                if j - i >= size:
                    break
                seen.update(terms)
            best = max(best, sum(weights[t] for t in seen))
        return best / self.total if self.total else 0.0

    def _near(self, text: str, hits: list[int]) -> float:
        """Return the largest share of the question within 150 characters of what is wanted."""
        best = 0.0
        for hit in hits[:12]:
            around = text[max(0, hit - 150) : hit + 150]
            here = {t for raw in raw_tokens(around) for t in expand(raw)}
            best = max(best, _share(self.weights, here, self.total))
        return best

    def _add_meaning(self, rows: list[dict[str, float]], candidates: Sequence[Candidate]) -> None:
        if self.embedder is None:
            return
        asked = self.asked
        words = {raw: max((self.weights.get(t, 0.0) for t in expand(raw)), default=0.0) for raw in dict.fromkeys(raw_tokens(asked.text)) if expand(raw)}
        texts = [asked.text, *(c.text[:400] for c in candidates), *(" ".join([*c.leads, c.title]) for c in candidates)]
        vectors = self.embedder.embed(texts)
        n = len(candidates)
        cosine = vectors[1 : n + 1] @ vectors[0]
        lead = vectors[n + 1 :] @ vectors[0]
        lines = [(k, line.strip()) for k, c in enumerate(candidates) for line in c.text.split("\n") if len(line.strip()) > 12]
        best = np.zeros(n)
        if lines:
            near = self.embedder.embed([line for _, line in lines]) @ vectors[0]
            for (k, _), value in zip(lines, near, strict=True):
                best[k] = max(best[k], value)
        soft = np.zeros(n)
        listed = [word for word in words if words[word] > 0]
        if listed:
            vocabulary = sorted({raw.lower() for c in candidates for raw in raw_tokens(c.text + " " + " ".join(c.leads) + " " + c.title) if expand(raw) and len(raw) > 2})[:6000]
            if vocabulary:
                table = self.embedder.embed(listed) @ self.embedder.embed(vocabulary).T
                index = {word: k for k, word in enumerate(vocabulary)}
                sum_ = sum(words[word] for word in listed)
                for k, c in enumerate(candidates):
                    own = [index[raw.lower()] for raw in set(raw_tokens(c.text + " " + " ".join(c.leads) + " " + c.title)) if raw.lower() in index]
                    if own:
                        near_ = table[:, own].max(axis=1)
                        near_ = np.where(near_ >= 0.4, near_, 0.0)
                        soft[k] = sum(words[w] * v for w, v in zip(listed, near_, strict=True)) / sum_
        for k, row in enumerate(rows):
            row["cosine"] = float(cosine[k])
            row["cosine_lead"] = float(lead[k])
            row["cosine_line"] = float(best[k])
            row["soft"] = float(min(soft[k], 1.0))


_TEST = re.compile(r"(?:^|/)(?:tests?|testing|spec|examples?|demo)[/_.]|test_", re.I)


def _assigns(text: str, exact: str) -> bool:
    return bool(re.search(r"(?m)^[\s\-*`'\"|.]*(?:\w+:: *)?" + re.escape(exact) + r"[`'\"]*\s*(?:[:=(|]|--| – | - |\s{2,}|is\b|$)", text))


def _pairs(text: str) -> set[tuple[str, str]]:
    order = [terms[-1] for raw in raw_tokens(text) if (terms := expand(raw))]
    return set(zip(order, order[1:]))


def _has(text: str, exact: str) -> bool:
    at = text.find(exact)
    if at < 0 and len(exact) > 3:
        at = text.lower().find(exact.lower())
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(exact) : at + len(exact) + 1]
        if not (exact[0].isalnum() and (before.isalnum() or before == "_")) and not (
            exact[-1].isalnum() and (after.isalnum() or after == "_")
        ):
            return True
        at = text.find(exact, at + 1)
    return False


def _same(one: str, title: str) -> bool:
    return one.rstrip("()").lower() in (title.lower(), title.lower().rpartition(".")[2])
