"""Which embeddings evidence uses: the setting `embedding`, or `METATREE_EMBEDDING`."""

from __future__ import annotations

from collections.abc import Callable

from metatree.errors import UserError
from metatree.settings import Settings
from metatree_routers.embeddings.static import Embedder, static_embedder

NAMES = ("static", "minilm", "none")
SLOW = frozenset({"minilm"})
"""Their vectors are made while a tree is indexed, and files are compared without them: no question should wait."""


def embedding_set() -> str:
    """Return the name that is set.

    Raises:
        UserError: it is none of `NAMES`.
    """
    name = Settings.load().embedding
    if name not in NAMES:
        raise UserError(f"embedding={name!r}: use one of {', '.join(NAMES)}")
    return name


def embedder_of(name: str) -> Callable[[], Embedder | None] | None:
    """Return what gives the embedder of this name, loaded when it is first asked; None for words alone.

    What it returns raises MissingExtra where the package of `minilm` is not installed.
    """
    if name == "static":
        return static_embedder
    return _minilm if name == "minilm" else None


def _minilm() -> Embedder:
    from metatree_routers.embeddings._minilm import minilm_embedder

    return minilm_embedder()
