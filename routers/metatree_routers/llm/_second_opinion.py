"""What a model read, beside how likely the passages of the tree answer: a reader that errs is worth no more than none.

Where the passages have no clear opinion, in this text or elsewhere, the word of a model that is right elsewhere stands:
words cannot tell what is said in other words, or in another language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from metatree._util.threads import off_loop
from metatree.protocols import SURE, Answer, Passage, Reading, ReadRequest
from metatree_routers.weighing.trust import HEARD, Trust

CLEAR = SURE
"""How likely a passage answers, here or elsewhere, from which on it has an opinion."""
LEAST, MOST = 0.25, 0.95
"""How likely a text answers, at the least, since the model was led there and words cannot tell all; and at the most."""
_PASSAGES = 5


class SecondOpinion:
    """Weighs what a model read with the passages of a tree, by how often the model was right so far.

    Args:
        passages: `Evidence.passages` of the tree.
        trust: what is known of the model as a reader.
    """

    def __init__(self, passages: Callable[..., list[Passage]], trust: Trust) -> None:
        self._passages, self._trust = passages, trust

    @off_loop
    def on(self, request: ReadRequest, reading: Reading) -> Reading:
        """Return a reading without the answers that are likelier wrong than right, and with a passage that is likelier
        right than what the model said of it."""
        answers, notes = list(reading.answers), [reading.notes] if reading.notes else []
        for question in request.questions:
            said = [answer for answer in answers if answer.question == question and answer.complete]
            ranked = self._passages(question, k=_PASSAGES, text=(request.node, request.content))
            here = next((each for each in ranked if each.node_id == request.node.id), None)
            elsewhere = max((each.score for each in ranked if each.node_id != request.node.id), default=0.0)
            likely = 0.0 if here is None else here.score
            if max(likely, elsewhere) < CLEAR:
                confidence = self._trust.accuracy
                if confidence >= HEARD:
                    continue
            else:
                # What is likely of several texts is the less likely of each: one of them answers, not all.
                share = likely / max(1.0, sum(each.score for each in ranked))
                prior = likely if likely > elsewhere else share
                yes = 1.0 if said else 0.0
                confidence = round(self._trust.weighed(_within(prior), yes, earned=True), 4)
                self._trust.learn(_within(share), yes)
            if said and likely and self._trust.accuracy < HEARD and here is not None:
                answers = [answer for answer in answers if answer not in said]
                said = []  # not its words either, but those of the passage, if they are likely enough
            if said and confidence < request.sure:
                answers = [answer for answer in answers if answer not in said]
                notes.append(
                    f"the model answers from here, with a probability of {confidence:.2f} beside the passages"
                )
            elif said:
                answers = [replace(each, confidence=confidence) if each in said else each for each in answers]
            elif confidence >= request.sure and here is not None:
                quote = here.text.strip("\n")
                answers.append(Answer(question, quote, quote, confidence=confidence, earlier=here.earlier))
        useful = (
            reading.useful if answers == list(reading.answers) else bool(answers or reading.new_questions)
        )
        return replace(reading, answers=tuple(answers), notes="; ".join(notes), useful=useful)


def _within(likely: float) -> float:
    return min(MOST, max(LEAST, likely))
