"""The embedded router: picks the option that most of the words speak for, without a model."""

from __future__ import annotations

from metatree._util.threads import off_loop
from metatree.protocols import ABSTAINED, Option, RouteDecision, Router, RouteRequest, Traits
from metatree_routers.embedded._menu_scores import MenuScore, score_menu
from metatree_routers.embeddings.static import Embedder, static_embedder

_NOTHING = "nothing in or below it matches the questions"
_LITTLE = "next to nothing in or below it matches the questions"
_DOUBTFUL = "a word that the questions turn on is in no text of the tree"
_MOST_WORDS = 4


class EmbeddedRouter(Router):
    """Routes by evidence: the option's score where the search gives one, else its title and description.

    Holds no state: the same request gives the same decision. Options that nothing speaks for are ruled out, and all
    of them where the evidence says, by scores of at most `ABSTAINED`, that no text has a word the questions turn on.

    Args:
        embeddings: whether static embeddings are used where they can be loaded.
    """

    traits = Traits(any_loop=True, follows_evidence=True)

    def __init__(self, *, embeddings: bool = True) -> None:
        self._embeddings = embeddings

    @off_loop
    def route(self, request: RouteRequest) -> RouteDecision:
        """Choose the option with the best score, and rule out those without any."""
        bare = [option for option in request.options if option.score is None]
        read = dict(zip((option.id for option in bare), self._scores(request, bare), strict=True))
        scores = {
            option.id: read[option.id].score if option.score is None else option.score
            for option in request.options
        }
        ruled_out = {
            option.id
            for option in request.options
            if scores[option.id] <= (0 if option.score is None else ABSTAINED)
        }
        viable = [option for option in request.options if option.id not in ruled_out]
        # Doubt is about all of a tree: beside an option that something speaks for, a low score is no more than low.
        little = _LITTLE if viable else _DOUBTFUL
        unviable = {
            option.id: _NOTHING if scores[option.id] <= 0 else little
            for option in request.options
            if option.id in ruled_out
        }
        if not viable:
            doubtful = _DOUBTFUL in unviable.values()
            return RouteDecision(
                None, unviable, _DOUBTFUL if doubtful else "no option has a word in common with the questions"
            )
        # Of equals, a leaf that is offered beside its branch: one call instead of one for each level on the way.
        best = max(viable, key=lambda option: (scores[option.id], option.parent is not None))
        return RouteDecision(best.id, unviable, _reason(best, scores[best.id], read.get(best.id)))

    def _scores(self, request: RouteRequest, options: list[Option]) -> list[MenuScore]:
        if not options:
            return []
        embedder: Embedder | None = static_embedder() if self._embeddings else None
        return score_menu(request.questions, options, embedder)


def _reason(option: Option, score: float, read: MenuScore | None) -> str:
    if read is None:
        line = f": {option.hints[0]!r}" if option.hints else ""
        return f"best evidence ({score:.2f}) in or below it{line}"
    if read.words:
        return f"title and description share {', '.join(read.words[:_MOST_WORDS])}"
    return f"title and description are nearest in meaning (cosine {read.cosine:.2f})"
