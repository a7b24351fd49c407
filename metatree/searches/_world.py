"""The world of a search: carries its effects out with a tree, a router, a reader and the other parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from metatree.durable import Attempt, Effect, Handler, Policy, report_usage
from metatree.errors import (
    BadModelAnswer,
    BrokenStore,
    MissingExtra,
    NotWorthAsking,
    StaleSource,
    StorageFull,
    StoreReplaced,
    TransientError,
    UnknownNode,
    UserError,
)
from metatree.node import Node
from metatree.parts import name_of
from metatree.protocols import (
    Answer,
    Composer,
    ComposeRequest,
    EarlierStatement,
    HasTraits,
    Option,
    Passage,
    Reader,
    Reading,
    ReadRequest,
    RouteDecision,
    Router,
    RouteRequest,
    Suite,
)
from metatree.searches._effects import (
    AskHuman,
    ByPart,
    ComposeAnswers,
    FindClosest,
    ListNode,
    RankMenu,
    ReadText,
    RouteMenu,
)
from metatree.searches._menu import Menu, MenuMaker
from metatree.searches._off_loop import Home
from metatree.searches._outcomes import (
    Chosen,
    ClosestFound,
    Composed,
    EarlierFound,
    FoundAnswer,
    Listing,
    MenuSplit,
    PassageFound,
    Ranked,
    ReadResult,
    Routed,
    unscored,
)
from metatree.searches._quotes import quote_in
from metatree.searches._state import UNVIABLE
from metatree.trees.line_ranges import without_shared_lines
from metatree.trees.text import encodable, line_in_file
from metatree.trees.tree import Tree

MODEL_ATTEMPTS = 3
NOT_QUOTED = "the quote does not stand in the text"
REASON_CHARS = 500
ANSWER_CHARS = 20_000
STORE_ERRORS = (UserError, TransientError, StorageFull, StoreReplaced)
"""Errors of the tree's files, or of how the run was set up: nothing that a search could learn from."""
CLOSEST = 3
"""Passages that are shown for a question that stays open, at most."""
_LOOKED_AT = 4 * CLOSEST
"""Of which these are taken: some are of the same lines."""
MOST_AT_TWO_LEVELS = 60
"""Options of a menu that shows the children of its options too."""


@dataclass(slots=True, kw_only=True, eq=False)
class World:
    """Handlers for the effects that need nodes, a router, a reader or a composer."""

    tree: Tree
    home: Home
    router: Router
    reader: Reader
    composer: Composer
    embedded: Suite
    """What stands in for parts whose model gives no usable answers."""
    menus: MenuMaker
    accepts: Callable[[Node], bool] | None
    has_tools: Callable[[Node], bool]
    tool_options: Callable[[Sequence[str], Node, Sequence[str]], list[Option]]
    timeout_s: float

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by kind of effect."""
        return {
            ListNode.kind: self._list,
            RouteMenu.kind: self._route,
            RankMenu.kind: self._rank,
            ReadText.kind: self._read,
            ComposeAnswers.kind: self._compose,
            FindClosest.kind: self._closest,
        }

    def policies(self) -> dict[str, Policy]:
        """Return how each kind is tried, timed and counted."""
        return {
            ListNode.kind: Policy(fatal=(Exception,)),
            RouteMenu.kind: replace(
                model_policy(self.router, "router_calls", timeout_s=self.timeout_s),
                guard=self._guard(self.router, self.reader) if self.router.traits.uses_model else None,
            ),
            RankMenu.kind: Policy(fatal=STORE_ERRORS),
            ReadText.kind: replace(
                model_policy(self.reader, "reads", timeout_s=self.timeout_s, needed=alone(self.reader)),
                guard=self._guard(self.reader),
            ),
            ComposeAnswers.kind: model_policy(self.composer, timeout_s=self.timeout_s),
            FindClosest.kind: Policy(fatal=STORE_ERRORS),
            AskHuman.kind: Policy(external=True),
        }

    def _guard(self, *parts: HasTraits) -> Handler | None:
        """Return what refuses to ask parts that are not worth asking, where the embedded ones can do their work.

        What the embedded reader answers is where the evidence leads: without a reader that is heard, no router helps.
        """
        asked = parts if self.accepts is None else parts[:1]
        declining = [part.traits.declines for part in asked if part.traits.declines is not None]
        if not declining or not self.menus.has_evidence:
            return None

        def guard(effect: Effect, attempt: Attempt) -> None:
            why = "" if effect.payload.embedded else next(filter(None, (each() for each in declining)), "")
            if why:
                raise NotWorthAsking(why)

        return guard

    def _list(self, effect: Effect, attempt: Attempt) -> Listing:
        payload: ListNode = effect.payload
        listing = self.menus.listing(payload.node)
        if listing is None:
            return {"gone": True}
        node, below = listing
        children = [child for child in below if child.id not in payload.marks]
        accepts = self.accepts
        return {
            "id": node.id,
            "title": node.title,
            "version": node.digest,
            "content": node.has_content,
            "tools": self.has_tools(node),
            "accept": accepts is not None and accepts(node),
            "children": [child.id for child in children],
            "collectable": accepts is not None and any(accepts(child) for child in children[:1]),
            "ruled_out": []
            if children
            else [c.id for c in below if c.id in payload.marks and payload.marks[c.id].kind == UNVIABLE],
        }

    async def _route(self, effect: Effect, attempt: Attempt) -> Routed | MenuSplit:
        payload: RouteMenu = effect.payload
        questions = tuple(payload.questions)
        router: Router = standing_in(payload, self.router, self.embedded.router)
        by_evidence = payload.wanted and payload.jumps and router.traits.follows_evidence
        if by_evidence and (at_once := self._by_evidence(payload)):
            return at_once
        node, menu = self._menu(payload)
        if node is None or not menu.options:
            _count_nobody(router, "router_calls")  # nobody was asked
            return _nothing_offered(list(payload.options))
        request = RouteRequest(questions, payload.context, node, tuple(menu.options), attempt.errors)
        missing = {i: "it is no longer in the tree" for i in payload.options if i not in menu.nodes}
        capacity = router.traits.capacity
        if capacity is not None and not payload.tools:
            fits = max(2, capacity(request))
            if fits < len(menu.options):
                ids = [option.id for option in menu.options]
                _count_nobody(router, "router_calls")
                return {"split": [ids[i : i + fits] for i in range(0, len(ids), fits)], "gone": missing}
            deeper = self._deeper(menu, payload) if payload.jumps else None
            if deeper is not None:
                wider = replace(request, options=tuple(deeper.options))
                if capacity(wider) >= len(wider.options):
                    menu, request = deeper, wider
        said = await self.home.asks(router, router.route)(request)
        if not isinstance(said, RouteDecision) and not router.traits.uses_model:
            raise UserError(
                f"the router {name_of(router)!r} must return a RouteDecision, not {type(said).__name__}: "
                "RouteDecision(option.id), or RouteDecision(None) where nothing fits"
            )
        decision = checked_decision(said, menu.options)
        chosen = next((option for option in menu.options if option.id == decision.choice), None)
        value = self._choice_json(chosen, menu.nodes)
        is_kept = value["accept"] and value["choice"] not in payload.collected
        return {
            **value,
            "inner": bool(chosen and is_kept and payload.wanted > 1 and self._is_inner(chosen.id)),
            "why": self.menus.why(node.id, chosen.id, questions) if chosen and is_kept else "",
            "more": [],
            "by_model": not router.traits.follows_evidence,
            "unviable": {**missing, **decision.unviable},
            "probabilities": decision.probabilities,
            "reason": decision.reason,
            "offered": [option.id for option in menu.options] + list(missing),
        }

    def _by_evidence(self, payload: RouteMenu) -> Routed | None:
        """Return all that a router that adds nothing to the evidence would choose here, one after the other.

        One ranking has it all, so no menu is made, with hints that nobody reads. None where the evidence has nothing.
        """
        questions, count = tuple(payload.questions), payload.wanted
        try:
            matches = self.menus.following(payload.node, questions, payload.marks, payload.collected, count)
        except UnknownNode as exc:
            raise _tree_changed_error(exc) from exc
        if not matches:
            return None
        all_there = len(matches) >= count
        reasons = self.menus.reasons(payload.node, [match.id for match, _ in matches], questions)
        first, *more = [
            Ranked(
                choice=match.id,
                title=match.title,
                score=round(min(1.0, scored.score), 4),
                hint=self.menus.hint(scored),
                accept=True,
                path=self._file_and_lines(match)[0],
                lines=self._file_and_lines(match)[1],
                at=str(match.attributes.get("at") or ""),
                inner=not all_there and self._is_inner(match.id),
                why=reasons.get(match.id, ""),
            )
            for match, scored in matches
        ]
        return {
            **first,
            "by_model": False,
            "more": more,
            "unviable": {},
            "probabilities": {},
            "reason": f"best evidence ({first['score']:.2f})",
            "offered": [str(first["choice"])],
        }

    def _is_inner(self, node: str) -> bool:
        listing = self.menus.listing(node)
        return listing is not None and self.accepts is not None and any(map(self.accepts, listing[1]))

    def _rank(self, effect: Effect, attempt: Attempt) -> Ranked:
        ranked: RankMenu = effect.payload
        node, menu = self._menu(ranked.menu)
        best = self.menus.best(menu) if menu.options else None
        value = self._choice_json(best, menu.nodes)
        questions = tuple(ranked.menu.questions)
        why = self.menus.why(node.id, best.id, questions) if node and best and value["accept"] else ""
        return {**value, "why": why}

    def _menu(self, payload: RouteMenu) -> tuple[Node | None, Menu]:
        """Return the node being routed, None when it is gone, and what is offered there: nodes, or its tools."""
        try:
            node = self.menus.find(payload.node)
            if node is None:
                return None, Menu([], {})
            if payload.tools:
                options = self.tool_options(payload.options, node, payload.questions)
                return node, Menu(options, dict.fromkeys(payload.options, node))
            questions = tuple(payload.questions)
            return node, self.menus.make(
                node.id,
                payload.options,
                questions,
                payload.marks,
                jumps=payload.jumps,
                collected=payload.collected,
                by_passages=payload.embedded,
            )
        except UnknownNode as exc:
            raise _tree_changed_error(exc) from exc

    def _deeper(self, menu: Menu, payload: RouteMenu) -> Menu | None:
        try:
            return self.menus.deepen(menu, payload.marks, most=MOST_AT_TWO_LEVELS)
        except UnknownNode as exc:
            raise _tree_changed_error(exc) from exc

    def _choice_json(self, option: Option | None, nodes: Mapping[str, Node]) -> Chosen:
        if option is None:
            return unscored(None)
        accept = self.accepts is not None and self.accepts(nodes[option.id])
        path, lines = self._file_and_lines(nodes[option.id]) if accept else (None, None)
        return {
            "choice": option.id,
            "title": option.title,
            "score": round(option.score or 0.0, 4),
            "hint": option.hints[0] if option.hints else "",
            "accept": accept,
            "path": path,
            "lines": lines,
            "at": str(nodes[option.id].attributes.get("at") or ""),
        }

    def _file_and_lines(self, node: Node) -> tuple[str | None, list[int] | None]:
        """Return the path of the file of a node, and its lines there; none for what somebody else says is a file."""
        if node.path is None or self.tree.is_imported(node.id):
            return None, None
        return node.path, None if node.lines is None else list(node.lines)

    async def _read(self, effect: Effect, attempt: Attempt) -> ReadResult:
        payload: ReadText = effect.payload
        node = self.tree.find(payload.target.node)
        if node is None:
            _count_nobody(self.reader, "reads")  # nobody was asked
            return {**_READ_NOTHING, "notes": "it is no longer in the tree"}
        content = payload.target.content
        if content is None:
            try:
                content = node.content if node.content is not None else self.tree.content(node.id)
            except BrokenStore:
                raise
            except (StaleSource, UserError, OSError) as exc:
                _count_nobody(self.reader, "reads")
                return {**_READ_NOTHING, "notes": str(exc)}
        request = ReadRequest(
            node,
            content,
            tuple(payload.questions),
            payload.context,
            tuple(Answer(p["question"], p["answer"], p["quote"], p["complete"]) for p in payload.parts),
            attempt.errors,
            payload.sure,
            bool(payload.target.question),
        )
        reader: Reader = standing_in(payload, self.reader, self.embedded.reader)
        by_model = reader.traits.uses_model
        answered = await self.home.asks(reader, reader.read)(request)
        reading = checked_reading(answered, content, by_model=by_model)
        if by_model:
            _ask_for_quotes(reading, attempt.errors)
        for answer, given in zip(reading["answers"], answered.answers, strict=True):
            if given.earlier:
                answer["earlier"] = [found for each in given.earlier if (found := self._earlier(each))]
        if payload.target.content is None:
            for answer in reading["answers"]:
                where = _place_of(answer["quote"], content, node)
                answer["place"], answer["lines"] = where["place"], where["lines"]
                answer["pages"] = where["pages"]
        return reading

    def _earlier(self, said: EarlierStatement) -> EarlierFound | None:
        """Return what was said before, with its place; None where it does not stand there."""
        node = self.tree.find(said.node_id)
        if node is None:
            return None
        try:
            content = self.tree.content(node)
        except (StaleSource, UserError, OSError):
            return None
        quote = quote_in(content, _text(said.text, ANSWER_CHARS))
        if not quote:
            return None
        where = _place_of(quote, content, node)
        return {
            "node": node.id,
            "title": node.title,
            "at": _text(said.at, 40),
            "quote": quote,
            "place": where["place"],
            "lines": where["lines"],
        }

    async def _compose(self, effect: Effect, attempt: Attempt) -> Composed:
        payload: ComposeAnswers = effect.payload
        request = ComposeRequest(
            tuple(payload.questions),
            tuple(Answer(a["question"], a["answer"], a["quote"], a["complete"]) for a in payload.answers),
            tuple(payload.open),
            payload.context,
        )
        composer: Composer = standing_in(payload, self.composer, self.embedded.composer)
        text = await self.home.asks(composer, composer.compose)(request)
        if not isinstance(text, str) or not text.strip():
            raise BadModelAnswer("the composer must return a text that is not empty")
        return {"text": text}

    def _closest(self, effect: Effect, attempt: Attempt) -> ClosestFound:
        payload: FindClosest = effect.payload
        return {"passages": closest_to(payload.questions, self.menus, self.tree)}


def closest_to(questions: Sequence[str], menus: MenuMaker, tree: Tree) -> list[PassageFound]:
    """Return the passages that come closest to each question, at most `CLOSEST` that share no lines."""
    found: list[PassageFound] = []
    for question in questions:
        passages = (
            _passage_json(question, passage, tree.find(passage.node_id))
            for passage in menus.closest(question, k=_LOOKED_AT)
        )
        # A node, its parts and its neighbours may each have a passage of the same lines of their file.
        found += without_shared_lines(passages, lambda each: (each["place"], each["lines"]), most=CLOSEST)
    return found


class _Place(TypedDict):
    place: str
    lines: list[int] | None
    pages: list[int] | None


def _place_of(quote: str, content: str, node: Node) -> _Place:
    """Return where a quote from the content of a node stands."""
    at = content.find(quote) if quote.strip() else -1
    lines = None
    if at >= 0:
        first = content.count("\n", 0, at + len(quote) - len(quote.lstrip("\n"))) + 1
        lines = [first, first + quote.strip("\n").count("\n")]
    return _in_file(node, lines)


def _in_file(node: Node, lines: list[int] | None) -> _Place:
    """Return lines of the content of a node as lines of its file, where that is text, or its pages."""
    source = node.source
    # Elsewhere the numbers of a source are those of a turn, a page or a table.
    if source is not None and source.type == "text":
        in_file = None if lines is None else [line_in_file(source, line) for line in lines]
        return {"place": source.path, "lines": in_file, "pages": None}
    first, last = (node.attributes.get(name) for name in ("first_page", "last_page"))
    if source is not None and isinstance(first, int) and isinstance(last, int):
        return {"place": source.path, "lines": None, "pages": [first, last]}
    return {"place": node.id, "lines": lines, "pages": None}


def _passage_json(question: str, passage: Passage, node: Node | None) -> PassageFound:
    """Return a passage with its place in the file, where the text of its node is lines of one."""
    where = None if node is None else _in_file(node, list(passage.lines))
    place, lines = passage.node_id, list(passage.lines)
    if where is not None and where["lines"] is not None:
        place, lines = where["place"], where["lines"]
    return {
        "question": question,
        "node": passage.node_id,
        "title": passage.title,
        "place": place,
        "lines": lines,
        "quote": _text(passage.text, ANSWER_CHARS),
        "score": round(passage.score, 4),
    }


def _tree_changed_error(exc: UnknownNode) -> TransientError:
    """Return the error for a node that another process deleted while it was looked at."""
    return TransientError(f"the tree changed: {exc}", retry_after_s=0.01)


_READ_NOTHING: ReadResult = {
    "answers": [],
    "new_questions": [],
    "notes": "",
    "useful": False,
    "unread": True,
}


def model_policy(part: HasTraits, *counts: str, timeout_s: float, needed: bool = False) -> Policy:
    """Return the policy of an effect that a router, reader or the like carries out.

    A part that uses a model counts against `Limits.model_calls` too. An error of the caller's (a key
    that is missing) stops the run at once.

    Args:
        needed: whether a part that stays out of reach stops the run too, since nothing can stand in for it.
    """
    fatal = (UserError, MissingExtra, TransientError) if needed else (UserError, MissingExtra)
    return Policy(attempts=MODEL_ATTEMPTS, timeout_s=timeout_s, counts=_counters(part, *counts), fatal=fatal)


def alone(part: HasTraits) -> bool:
    """Say whether nothing stands in for a part that stays out of reach: for a model the embedded one does."""
    return not part.traits.uses_model


def standing_in(payload: ByPart, part: Any, embedded: Any) -> Any:
    """Return the part that carries an effect out: the one of the run, or the embedded one in its place."""
    if not payload.embedded:
        return part
    if part.traits.uses_model:
        report_usage(model_calls=-1)  # counted for the model, which is not asked
    return embedded


def _counters(part: HasTraits, *counts: str) -> tuple[str, ...]:
    return (*counts, "model_calls") if part.traits.uses_model else counts


def _count_nobody(part: HasTraits, counter: str) -> None:
    """Take back what was counted for an effect, since the part was not asked after all."""
    report_usage(**dict.fromkeys(_counters(part, counter), -1))


def checked_decision(decision: object, options: list[Option]) -> RouteDecision:
    """Return a decision in which only offered ids are left.

    Raises:
        BadModelAnswer: it is no decision, or it names an id that was not offered and says nothing else of use. The
            router is notified. Lost: ruling out everything offered at once, which punishes a typo with a lost branch.
    """
    if not isinstance(decision, RouteDecision):
        raise BadModelAnswer(f"a router must return a RouteDecision, not {type(decision).__name__}")
    offered = {option.id for option in options}
    if not isinstance(decision.unviable, Mapping):
        raise BadModelAnswer("`unviable` must map ids to reasons")
    unviable = {i: _text(r, REASON_CHARS) for i, r in decision.unviable.items() if i in offered}
    choice = decision.choice
    if choice is not None and (not isinstance(choice, str) or choice not in offered):
        if not unviable:
            raise BadModelAnswer(
                f"{_text(choice, 100)!r} was not offered; the options are {sorted(offered)[:20]}"
            )
        choice = None
    return RouteDecision(choice, unviable, _text(decision.reason, REASON_CHARS), _shares(decision, offered))


def _shares(decision: RouteDecision, offered: Collection[str]) -> dict[str, float]:
    """Return the probabilities of what was offered, without what is none."""
    if not isinstance(decision.probabilities, Mapping):
        raise BadModelAnswer("`probabilities` must map ids to numbers")
    return {
        option: round(float(share), 4)
        for option, share in decision.probabilities.items()
        if option in offered and isinstance(share, int | float) and 0 <= share <= 1
    }


def checked_reading(reading: object, content: str, *, by_model: bool = False) -> ReadResult:
    """Return a reading as JSON, with quotes that are not in the content left empty.

    Args:
        by_model: whether a model has read.

    Raises:
        BadModelAnswer: it is no reading.
    """
    if not isinstance(reading, Reading):
        raise BadModelAnswer(f"a reader must return a Reading, not {type(reading).__name__}")
    answers = [answer_json(answer, content, by_model=by_model) for answer in reading.answers]
    questions = (reading.new_questions,) if isinstance(reading.new_questions, str) else reading.new_questions
    return {
        "answers": answers,
        "new_questions": [_text(q, REASON_CHARS) for q in questions if str(q).strip()],
        "notes": _text(reading.notes, ANSWER_CHARS),
        "useful": bool(reading.useful or answers),
    }


def _ask_for_quotes(reading: ReadResult, errors: Sequence[str]) -> None:
    """Raise `BadModelAnswer`, once for each text, when a model answers without words that stand in the text."""
    missing = [answer for answer in reading["answers"] if not answer["quote"] and answer["answer"]]
    last = len(errors) + 1 >= MODEL_ATTEMPTS
    if missing and not last and not any(error.startswith(NOT_QUOTED) for error in errors):
        raise BadModelAnswer(
            f"{NOT_QUOTED} for {_text(missing[0]['answer'], 80)!r}: copy the words of the text that say it, exactly, "
            "or leave this answer out"
        )


def answer_json(answer: object, content: str | None = None, *, by_model: bool = False) -> FoundAnswer:
    """Return an answer as JSON, with the quote as it stands in the content, or empty when it does not.

    Args:
        by_model: whether a model gives it, which has to quote.

    Raises:
        BadModelAnswer: it is no answer.
    """
    if not isinstance(answer, Answer):
        raise BadModelAnswer(f"`answers` must hold Answer objects, not {type(answer).__name__}")
    quote = _text(answer.quote, ANSWER_CHARS)
    there = quote if content is None else quote_in(content, quote)
    return {
        "question": _text(answer.question, ANSWER_CHARS),
        "answer": _text(answer.answer, ANSWER_CHARS),
        "quote": there,
        "verified": bool(there) or not (quote or by_model),
        "complete": bool(answer.complete),
        "confidence": answer.confidence,
    }


def _text(value: object, most: int) -> str:
    text = encodable(value if isinstance(value, str) else "" if value is None else str(value))
    return text if len(text) <= most else text[: most - 1] + "…"


def _nothing_offered(options: list[str]) -> Routed:
    missing = dict.fromkeys(options, "it is no longer in the tree")
    return {
        "choice": None,
        "title": "",
        "score": 0.0,
        "hint": "",
        "accept": False,
        "unviable": missing,
        "reason": "the options are gone",
        "offered": options,
    }
