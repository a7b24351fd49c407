"""The router that asks a decision model, and the reader that asks it whether a passage answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from metatree.durable import report_usage, run_memory
from metatree.errors import UserError
from metatree.node import place_of
from metatree.protocols import (
    Answer,
    Evidence,
    Option,
    Passage,
    Reader,
    Reading,
    ReadRequest,
    RouteDecision,
    Router,
    RouteRequest,
    Suite,
    Traits,
)
from metatree_routers.decisions._model import YES, Choice, DecisionModel, Likelihoods, Question, YesNo
from metatree_routers.embedded.reader import EmbeddedReader
from metatree_routers.embedded.suite import embedded_suite
from metatree_routers.llm.errors import AnswerRefused
from metatree_routers.llm.labels import NONE, labels
from metatree_routers.llm.prompts import best_first, line
from metatree_routers.weighing.decide import decided_by_shares
from metatree_routers.weighing.trust import HEARD, JUDGES, POOR, Trust
from metatree_routers.wrappers.disk_cache import Cache, DiskCache

WIRES = ("systemone", "decisions", "logits")
WHICH = "Which option leads to the answer of the questions? Take none when no option can."
CANNOT = "Option {label} ({title}) cannot lead to the answer of the questions."
ANSWERS = "The text says the answer of the question: {question}"
SURELY_NOT = 0.9
"""How likely an option cannot lead to an answer before it is ruled out, if the choice and the evidence say so too."""
_WEAK = 0.5
"""Options with less than this share of the best score are asked about one by one."""
_MOST_DOUBTED = 16
"""So many of them, those with the least evidence."""
_QUESTION, _CONTEXT, _DESCRIPTION, _SHORT, _HINT = 400, 3_000, 160, 60, 110
"""Characters."""
_MANY_OPTIONS = 60
_TEXT = 6_000
_LEAST_PRIOR, _MOST_PRIOR = 0.3, 0.95
"""How likely a text answers at the least, since a router led there and words cannot tell what is said in other words;
and at the most."""


class DecisionRouter(Router):
    """Asks a decision model which option to take, and whether others can be ruled out, all in one request.

    The probabilities are weighed with the evidence, by how much the model was worth so far, and kept in the decision:
    when the search comes back to a menu, it goes on with the next likeliest without asking again.

    Args:
        model: `systemone/MODEL`, `decisions/MODEL` or `logits/MODEL`, with `@URL` behind it or not, or a
            `DecisionModel`.
        base_url: of its server; None asks the environment.
        cache: remembers what the model's word is worth; None for the user's cache folder, False for nowhere.
        options: of the wire: `api_key`, `max_options`, `timeout_s`, `concurrency`, `transport`.

    Raises:
        UserError: there is no such wire, or no server is named.
        BadKey: OpenAI's own API is meant, and there is no key.

    Example:
        >>> DecisionRouter("systemone/clef-flash", base_url="http://localhost:11434/v1")
        DecisionRouter('systemone/clef-flash http://localhost:11434/v1')
    """

    def __init__(
        self,
        model: str | DecisionModel,
        *,
        base_url: str | None = None,
        cache: Cache | bool | None = None,
        **options: Any,
    ) -> None:
        self.model = model_named(model, base_url=base_url, **options) if isinstance(model, str) else model
        kept = DiskCache(name="servers") if cache is None else None if isinstance(cache, bool) else cache
        self.trust = Trust(kept, self.model.name)
        self._reading = Trust(kept, f"{self.model.name} reads", prior=JUDGES)

    def __repr__(self) -> str:
        return f"DecisionRouter({self.model.name!r})"

    @property
    def traits(self) -> Traits:
        """It says how many options one choice takes, and how likely each is."""
        return Traits(
            uses_model=True,
            cache_key=self.model.name,
            capacity=self._capacity,
            gives_probabilities=True,
            declines=lambda: self.trust.too_poor(POOR, "menus"),
        )

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return this router, a `DecisionReader` over the same model, and the embedded parts for all else."""
        others = embedded_suite(evidence=evidence)
        passages = evidence.passages if evidence is not None and evidence.traits.gives_passages else None
        reader = DecisionReader(self.model, trust=self._reading, passages=passages)
        return Suite(self, reader, others.tool_caller, others.composer, others.describer)

    def _capacity(self, request: RouteRequest) -> int:
        return min(len(request.options), self.model.max_options - 1)  # one is for none of them

    async def route(self, request: RouteRequest) -> RouteDecision:
        options = _told_once(best_first(request.options)[: self.model.max_options - 1])
        named = dict(zip(labels(len(options)), options, strict=True))
        questions: dict[str, Question] = {"which": _which(named)}
        doubted = {f"not_{label}": label for label in self._doubted(named)}
        questions |= {
            name: YesNo(CANNOT.format(label=label, title=line(named[label].title, 90)))
            for name, label in doubted.items()
        }
        known, state = run_memory(), _state(request)
        key = f"{self.model.name} {state} {questions}"
        if key in known:  # what was asked in this run is not asked again
            report_usage(model_calls=-1, cache_hits=1)
            said: Mapping[str, Likelihoods] = known[key]
        else:
            said = await self.model.decide(state, questions)
            if "which" not in said:
                raise AnswerRefused("the model declined to choose")
            known[key] = said
        shares = {option.id: said["which"][label] for label, option in named.items()}
        unviable = _ruled_out(said, doubted, named)
        return decided_by_shares(request, shares, said["which"][NONE], unviable, self.trust)

    def _doubted(self, named: Mapping[str, Option]) -> Sequence[str]:
        """Return the options that could be ruled out: those that the least evidence speaks for."""
        top = max((option.score or 0.0 for option in named.values()), default=0.0)
        weak = [label for label, option in named.items() if not top or (option.score or 0.0) < _WEAK * top]
        return weak[::-1][: min(_MOST_DOUBTED, self.model.max_questions - 1)]


class DecisionReader(Reader):
    """Quotes the passage that answers, and asks a decision model whether it does.

    Args:
        model: the decision model.
        trust: what its word on passages is worth.
        passages: ranks the passages of a text beside those of the tree (`Evidence.passages`).
    """

    def __init__(
        self,
        model: DecisionModel,
        *,
        trust: Trust | None = None,
        passages: Callable[..., list[Passage]] | None = None,
    ) -> None:
        self.model = model
        self._trust = trust or Trust(prior=JUDGES)
        self._by_passages = passages is not None
        self._embedded = EmbeddedReader(passages=passages)

    @property
    def traits(self) -> Traits:
        """It asks a model."""
        declines = partial(self._trust.too_poor, HEARD, "texts") if self._by_passages else None
        return Traits(uses_model=True, cache_key=self.model.name, declines=declines)

    async def read(self, request: ReadRequest) -> Reading:
        """Return the embedded reader's passages, with how likely both find that they answer."""
        reading = await self._embedded.read(replace(request, sure=0.0))
        open_ = [answer for answer in reading.answers if answer.confidence is not None]
        if not open_:
            return reading
        questions = {
            f"answers_{number}": YesNo(ANSWERS.format(question=line(answer.question, _QUESTION)))
            for number, answer in enumerate(open_[: self.model.max_questions])
        }
        said = await self.model.decide(_text(request, open_[0].quote), questions)
        if not said:
            raise AnswerRefused("the model declined to say whether the text answers")
        judged = {id(answer): said.get(f"answers_{number}") for number, answer in enumerate(open_)}
        answers, notes = list[Answer](), list[str]()
        for answer in reading.answers:
            likely = judged.get(id(answer))
            if answer.confidence is None or likely is None:
                answers.append(answer)
                continue
            confidence = self._weighed(answer.confidence, likely[YES])
            if confidence >= request.sure:
                answers.append(replace(answer, confidence=round(confidence, 4)))
            else:
                notes.append(f"its closest passage answers with a probability of {confidence:.2f}")
        return Reading(tuple(answers), useful=bool(answers), notes="; ".join(notes) if not answers else "")

    def _weighed(self, by_words: float, said: float) -> float:
        if (
            not self._by_passages
        ):  # without the others of the tree its words tell nothing of a text, or of the model
            return self._trust.weighed(0.5, said)
        return self._trust.yes_or_no(min(_MOST_PRIOR, max(_LEAST_PRIOR, by_words)), said)


def model_named(name: str, *, base_url: str | None = None, **options: Any) -> DecisionModel:
    """Return the model behind a name such as `systemone/clef-flash@http://localhost:11434/v1`.

    Raises:
        UserError: there is no such wire, or no model is named.
    """
    wire, _, model = name.partition("/")
    before, at, address = model.rpartition("@http")
    if at:
        model, base_url = before, base_url or f"http{address}"
    if wire not in WIRES or not model:
        raise UserError(f"no decision model {name!r}: write {', '.join(f'{each}/MODEL' for each in WIRES)}")
    if wire == "systemone":
        from metatree_routers.decisions._systemone import SystemOne

        return SystemOne(model, base_url=base_url, **options)
    if wire == "decisions":
        from metatree_routers.decisions._openai_decisions import OpenAIDecisions

        return OpenAIDecisions(model, base_url=base_url, **options)
    from metatree_routers.decisions._logits import Logits

    return Logits(model, base_url=base_url, **options)


def _state(request: RouteRequest) -> str:
    questions = "\n".join(line(question, _QUESTION) for question in request.questions)
    known = f"\nKnown:\n{request.context[:_CONTEXT]}" if request.context else ""
    return f"Questions:\n{questions}{known}\nThe options lie in {line(request.node.title, 90)!r}."


def _which(named: Mapping[str, Option]) -> Choice:
    most = _SHORT if len(named) > _MANY_OPTIONS else _DESCRIPTION
    said = {label: _told(option, most) for label, option in named.items()}
    return Choice(WHICH, {**said, NONE: "none of these leads to the answer"})


def _told_once(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return options without the lines of a branch that come from a leaf which is offered beside it, with that line."""
    told = tuple(f"{option.title}: " for option in options if option.parent is not None and option.hints)
    return tuple(
        replace(option, hints=tuple(hint for hint in option.hints if not hint.startswith(told)))
        if told and option.parent is None
        else option
        for option in options
    )


def _told(option: Option, most: int) -> str:
    under = f" (in {line(option.parent, 90)})" if option.parent else ""
    place = f", {line(option.place, 90)}" if option.place and option.place != option.title else ""
    description = f": {line(option.description, most)}" if option.description else ""
    hints = "".join(f" > {line(hint, _HINT)}" for hint in option.hints[:2])
    return f"{line(option.title, 90)}{under}{place}{description}{hints}"


def _ruled_out(
    said: Mapping[str, Likelihoods], doubted: Mapping[str, str], named: Mapping[str, Option]
) -> dict[str, str]:
    return {
        named[label].id: f"the model is sure with {said[name][YES]:.2f} that it does not lead there"
        for name, label in doubted.items()
        if name in said and said[name][YES] >= SURELY_NOT
    }


def _text(request: ReadRequest, quote: str) -> str:
    """Return what is read with its place, cut to what lies around the quote."""
    content, at = request.content, max(0, request.content.find(quote))
    if len(content) > _TEXT:
        start = max(0, min(at - _TEXT // 3, len(content) - _TEXT))
        content = content[start : start + _TEXT]
    place = place_of(request.node)
    return f"{line(request.node.title, 90)}{f' ({line(place, 200)})' if place else ''}\n{content}"
