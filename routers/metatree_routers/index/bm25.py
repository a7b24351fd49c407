"""BM25 over posting lists, as pure functions on arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BM25:
    """The two parameters of BM25.

    Source: Robertson, Walker 1994; the variant of Lucene: inverse document frequency never below 0, and no constant
    factor (k1 + 1).
    """

    k1: float = 1.5
    """How soon repetitions of a term stop counting."""
    b: float = 0.75
    """How much long texts are held back, in [0, 1]."""

    def idf(self, df: int, n: int) -> float:
        """Give the weight of a term that `df` of `n` documents hold."""
        return float(np.log1p((n - df + 0.5) / (df + 0.5)))

    def norms(self, lengths: Floats, mean: float) -> Floats:
        """Give, for each document, what `tf` is compared with; `mean` is the mean length."""
        relative = lengths / np.float32(mean) if mean > 0 else np.zeros_like(lengths)
        return np.asarray(self.k1 * (1.0 - self.b + self.b * relative), dtype=np.float32)

    def saturate(self, tf: Floats, norm: Floats) -> Floats:
        """Give tf / (tf + norm), which is in [0, 1)."""
        return tf / (tf + norm)
