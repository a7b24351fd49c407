"""What a model read, beside how likely the passages of the tree answer: a reader that errs is worth no more than none.

Where the passages have no clear opinion, in this text or elsewhere, the word of a model that is right elsewhere stands,
for less the more likely they find another text, and the more texts the model has read in vain: words cannot tell what
is said in other words, or in another language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from metatree._util.threads import off_loop
from metatree.durable import run_memory
from metatree.protocols import SURE, Answer, Passage, Reading, ReadRequest
from metatree_routers.weighing.trust import HEARD, Trust

CLEAR = SURE
"""How likely a passage answers, here or elsewhere, from which on it has an opinion."""
LEAST, MOST = 0.25, 0.95
"""How likely a text answers, at the least, since the model was led there and words cannot tell all; and at the most."""
LEADS, MOST_LED = 2.3, 0.8
"""The odds that a text answers to which a router led, over the odds that the router is right in a menu, where the
passages say as much of other texts; and how likely it answers at the most. Measured where they said more of others: 33,
60, 71 and 81 % of 208 texts answered, for routers that are right in 25, 50, 70 and 85 % of the menus."""
HALF_CLEAR, FIRST = 0.3, 0.85
"""Where the passages find it that likely that the first text answers to which a router led, and likelier than of any
other, something is learned of the model: it then answers in so many cases. Of 275 of which they found it likelier at
all, 94 % did (83 % where the router was right in a quarter of the menus), but each of these questions had an answer."""
DOUBT = 0.2
"""Added to what passages say of a text and of another one before both are compared: where they say next to nothing of
both, the model's word stands as it is."""
_PASSAGES = 5


class SecondOpinion:
    """Weighs what a model read with the passages of a tree, by how often the model was right so far.

    Args:
        passages: `Evidence.passages` of the tree.
        trust: what is known of the model as a reader.
        router: what is known of the router that led it to what it reads.
    """

    def __init__(self, passages: Callable[..., list[Passage]], trust: Trust, router: Trust) -> None:
        self._passages, self._trust, self._router = passages, trust, router

    @off_loop
    def on(self, request: ReadRequest, reading: Reading) -> Reading:
        """Return a reading without the answers that are likelier wrong than right, and with a passage that is likelier
        right than what the model said of it."""
        text, in_vain, known = (request.node.id, hash(request.content)), _read_in_vain(), run_memory()
        # What is asked once more, or told of a node by its tools, is no second text.
        is_new = known.setdefault(f"first read {request.node.id}", text) is text
        answers, notes = list(reading.answers), [reading.notes] if reading.notes else []
        for question in request.questions:
            said = [answer for answer in answers if answer.question == question and answer.complete]
            ranked = self._passages(question, k=_PASSAGES, text=(request.node, request.content))
            here = next((each for each in ranked if each.node_id == request.node.id), None)
            elsewhere = max((each.score for each in ranked if each.node_id != request.node.id), default=0.0)
            likely = 0.0 if here is None else here.score
            yes = 1.0 if said else 0.0
            vain = in_vain.setdefault(question, set())
            if max(likely, elsewhere) < CLEAR:
                odds = (likely + DOUBT) / (elsewhere + DOUBT)
                others = len(vain - {text})
                prior = _led(self._trust, self._router, others, odds)
                confidence = round(self._trust.weighed(prior, yes), 4)
                if is_new and not others and likely >= HALF_CLEAR and likely > elsewhere:
                    self._trust.learn(FIRST, yes)
            else:
                # What is likely of several texts is the less likely of each: one of them answers, not all.
                share = likely / max(1.0, sum(each.score for each in ranked))
                prior = likely if likely > elsewhere else share
                confidence = round(self._trust.weighed(_within(prior), yes, right=self._trust.earned), 4)
                if is_new:
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
            elif confidence >= request.sure and here is not None and max(likely, elsewhere) >= CLEAR:
                quote = here.text.strip("\n")
                answers.append(Answer(question, quote, quote, confidence=confidence, earlier=here.earlier))
            if all(answer.question != question for answer in answers):
                vain.add(text)
        useful = (
            reading.useful if answers == list(reading.answers) else bool(answers or reading.new_questions)
        )
        return replace(reading, answers=tuple(answers), notes="; ".join(notes), useful=useful)


def settled(trust: Trust, router: Trust) -> str:
    """Return why no other text can answer in the run in progress, whatever the model says of it; '' where one can.

    The more texts the model read in vain that it was led to, the less likely the next one answers; that is more so the
    better the model is, so that a poor one reads one or two, and one that is always right as many as there are.
    """
    read = [len(texts) for texts in _read_in_vain().values()]
    if not read or trust.weighed(_led(trust, router, min(read)), 1.0, right=trust.at_best) >= SURE:
        return ""
    return f"the model found no answer in {min(read)} texts, and is not right often enough to be believed of the next"


def _led(trust: Trust, router: Trust, others: int, odds: float = 1.0) -> float:
    """Return how likely a text answers to which a router led, when so many others were read in vain.

    Args:
        odds: how likely the passages find that it answers and not another text.
    """
    right = LEADS * router.accuracy / (1 - router.accuracy)
    first = min(MOST_LED, right / (1 + right))
    left = (1 - trust.weighed(first, 0.0, right=trust.at_best)) ** others
    return left * first * odds / (first * odds + 1 - first)


def _read_in_vain() -> dict[str, set[tuple[str, int]]]:
    """Return question -> the texts that were read for it in this run, and did not answer."""
    read: dict[str, set[tuple[str, int]]] = run_memory().setdefault("read in vain", {})
    return read


def _within(likely: float) -> float:
    return min(MOST, max(LEAST, likely))
