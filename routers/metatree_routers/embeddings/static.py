"""Static embeddings: a vector for a short text, from the table of token vectors inside the wordllama wheel.

Nothing here touches the network.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from metatree.trees.text import encodable
from metatree_routers.embeddings._safetensors import read_matrices
from metatree_routers.tokenizer import llama_tokenizer, package_file

DIMENSIONS = 256
MAX_CHARS = 400
"""A text is embedded up to here: an average over more tokens says less."""

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dimensions) float32 of length 1; a text without tokens gives zeros."""
        ...


class StaticEmbedder:
    """Averages the vectors of a text's tokens.

    Raises:
        LookupError: the wordllama package, or a file in it, is missing.
    """

    def __init__(self) -> None:
        # No padding and no truncation: the texts are cut before they come here.
        self._tokenizer = llama_tokenizer()
        self._table = _read_table(package_file("weights", "*_256.safetensors"))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return (n, 256) float32 vectors of length 1; a text without tokens gives zeros."""
        encoded = self._tokenizer.encode_batch_fast(
            [encodable(text[:MAX_CHARS]) for text in texts], add_special_tokens=False
        )
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, encoding in enumerate(encoded):
            # A loop over short takes beats `add.reduceat` over one long take 30 times: it stays in the cache.
            if encoding.ids:
                rows = self._table.take(encoding.ids, axis=0)
                np.add.reduce(rows, axis=0, dtype=np.float32, out=vectors[row])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.maximum(lengths, 1e-9)
        return vectors

    def tokens(self, word: str) -> list[int]:
        """Return the numbers of the tokens that a word is cut into; frequent tokens have small numbers."""
        ids: list[int] = self._tokenizer.encode(encodable(word[:MAX_CHARS]), add_special_tokens=False).ids
        return ids


def quantise(vectors: Vectors) -> npt.NDArray[np.int8]:
    """Keep vectors of length 1 as a byte for each number; cosines change by less than 0.01."""
    peak = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-9)
    return np.asarray(np.rint(vectors / peak * 127), dtype=np.int8)


def cosines(stored: npt.NDArray[np.int8], queries: Vectors) -> npt.NDArray[np.float32]:
    """Give the cosine of each of n stored vectors with each of m vectors of length 1: (m, n); 0 for one of zeros."""
    vectors = stored.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(queries @ vectors.T / np.maximum(lengths, 1e-9), dtype=np.float32)


_lock = threading.Lock()
_loaded: list[StaticEmbedder | None] = []
_problem = ""


def static_embedder() -> StaticEmbedder | None:
    """Return the embedder of this process, loaded once; None when it cannot be loaded (see `status`)."""
    global _problem
    with _lock:
        if not _loaded:
            try:
                _loaded.append(StaticEmbedder())
            except (LookupError, ImportError, OSError, ValueError) as exc:
                _problem = str(exc)
                _loaded.append(None)
        return _loaded[0]


def status() -> tuple[bool, str]:
    """Say whether static embeddings work here, in a sentence for people."""
    if static_embedder() is not None:
        return True, f"static embeddings: wordllama, {DIMENSIONS} dimensions"
    return False, (
        f"static embeddings: not available ({_problem}); search works with words alone and misses synonyms."
        " Mend it with: pip install --force-reinstall wordllama"
    )


def _read_table(path: Path) -> npt.NDArray[Any]:
    matrices = read_matrices(path)
    if len(matrices) != 1:
        raise ValueError(f"{path.name} holds {len(matrices)} matrices instead of one")
    (table,) = matrices.values()
    if table.dtype.kind != "f" or table.shape[1] != DIMENSIONS:
        raise ValueError(f"{path.name} holds {table.dtype} {table.shape}")
    return table
