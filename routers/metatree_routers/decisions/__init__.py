"""Routers and readers that ask a decision model: named questions go in, a probability for every option comes out.

Nothing is generated and nothing has to be parsed. Each wire is one module behind `DecisionModel`: `systemone`
(`/v1/systemone`), `openai_decisions` (`/v1/decisions`), `logits` (a chat server with log-probabilities). Names are
imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.protocols import Suite
    from metatree_routers.decisions._model import Choice, DecisionModel, Likelihoods, Question, Score, YesNo
    from metatree_routers.decisions._router import DecisionReader, DecisionRouter

_HOMES = {
    "Choice": "metatree_routers.decisions._model",
    "DecisionModel": "metatree_routers.decisions._model",
    "DecisionReader": "metatree_routers.decisions._router",
    "DecisionRouter": "metatree_routers.decisions._router",
    "Likelihoods": "metatree_routers.decisions._model",
    "Question": "metatree_routers.decisions._model",
    "Score": "metatree_routers.decisions._model",
    "YesNo": "metatree_routers.decisions._model",
}

__all__ = [
    "Choice",
    "DecisionModel",
    "DecisionReader",
    "DecisionRouter",
    "Likelihoods",
    "Question",
    "Score",
    "YesNo",
    "decision_suite",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def decision_suite(name: str) -> Suite:
    """Return the parts for a router's name: `systemone/MODEL`, `decisions/MODEL` or `logits/MODEL`, `@URL` behind it.

    Raises:
        UserError: no model or no server is named.
        BadKey: OpenAI's own API is meant, and there is no key.
    """
    from metatree_routers.decisions._router import DecisionRouter

    return DecisionRouter(name).suite()
