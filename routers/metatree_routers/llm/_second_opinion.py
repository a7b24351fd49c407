"""What a model read, beside how likely the passages of the tree answer: a reader that errs is worth no more than none.

Where the passages have no clear opinion, in this text or elsewhere, the word of a model that is right elsewhere stands:
words cannot tell what is said in other words, or in another language. A model that is wrong more often than right is
not heard at all: the embedded reader reads in its place, until it is right again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from metatree._util.threads import off_loop
from metatree.protocols import SURE, Answer, Passage, Reading, ReadRequest
from metatree_routers.embedded.reader import EmbeddedReader
from metatree_routers.weighing.trust import HEARD, Trust

NOT_HEARD = "nothing here answers; what the model says of texts is mostly wrong and is not heard"
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
        self._embedded = EmbeddedReader(passages=passages)

    async def on(self, request: ReadRequest, reading: Reading) -> Reading:
        """Return a reading without the answers that are likelier wrong than right, and with a passage that is likelier
        right than what the model said of it; the embedded reader's where the model is mostly wrong."""
        weighed = await self._weighed(request, reading)
        if self._trust.accuracy >= HEARD:
            return weighed
        read = await self._embedded.read(request)
        return replace(read, notes=read.notes or NOT_HEARD)

    @off_loop
    def _weighed(self, request: ReadRequest, reading: Reading) -> Reading:
        answers, notes = list(reading.answers), [reading.notes] if reading.notes else []
        for question in request.questions:
            said = [answer for answer in answers if answer.question == question and answer.complete]
            ranked = self._passages(question, k=_PASSAGES, text=(request.node, request.content))
            here = next((each for each in ranked if each.node_id == request.node.id), None)
            elsewhere = max((each.score for each in ranked if each.node_id != request.node.id), default=0.0)
            likely = 0.0 if here is None else here.score
            if max(likely, elsewhere) < CLEAR:
                confidence = self._trust.accuracy
                if confidence >= request.sure:
                    continue
            else:
                prior = min(MOST, max(LEAST, likely))
                confidence = round(self._trust.yes_or_no(prior, 1.0 if said else 0.0), 4)
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
