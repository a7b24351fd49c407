"""The published line: bm25s with its defaults, English stop words, Snowball stems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class BM25:
    """An index over the texts of one scope; bm25s is loaded when it is made.

    Args:
        texts: id -> text.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        import bm25s
        import Stemmer

        self._tokenize = bm25s.tokenize
        self._stemmer = Stemmer.Stemmer("english")
        self._ids = list(texts)
        self._index = bm25s.BM25()
        tokens = self._tokenize(list(texts.values()), stemmer=self._stemmer, show_progress=False)
        self._index.index(tokens, show_progress=False)

    def rank(self, question: str, k: int) -> Sequence[str]:
        """Return the ids of the best `k` texts."""
        return [id_ for id_, _ in self.scored(question, k)]

    def scored(self, question: str, k: int) -> Sequence[tuple[str, float]]:
        """Return the ids of the best `k` texts with their scores; 0 is for those that share no word."""
        words = self._tokenize([question], stemmer=self._stemmer, show_progress=False, return_ids=False)
        numbers, scores = self._index.retrieve(words, k=min(k, len(self._ids)), show_progress=False)
        return [
            (self._ids[int(number)], float(score))
            for number, score in zip(numbers[0], scores[0], strict=True)
        ]
