"""The control shell as a machine: which production fires next, and what its firing did.

    turn ─ look at the board ─ candidates ─┬─ none ── the end: accepted, stuck, or failed
      ▲                                    └─ the resolver picks one, or stops
      │                                                  │
      └── commits, facts, next state ◄── outcomes ── fire (one effect, or one for each token)

Candidates are the productions that the schedule allows in its present state and that have tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from metatree.durable import Effect, Event, Outcome, Signal
from metatree.errors import MetatreeError
from metatree.rules._working_memory import FactChange, WorkingMemory
from metatree.rules.language.values import Fact, from_json, to_json, value_text
from metatree.rules.matcher.explain import why_not
from metatree.rules.matcher.tokens import Token, Tokens, Values
from metatree.rules.shell.resolvers import AskingResolver, CandidateProduction, ConflictSet, Resolver
from metatree.rules.shell.schedule import Schedule

_SHOWN = 20
"""How many tokens of one failed firing are named."""


@dataclass(slots=True)
class Batch:
    """A firing of several tokens that failed: it is made in parts until the tokens that fail are found."""

    left: list[tuple[bool, Values]]
    """What is not dealt with yet: whether it is to be added, and its values."""
    size: int = 1
    """How many of them are in progress."""
    narrowing: bool = False
    """Whether a part of several has failed since the last token was set aside."""


@dataclass(slots=True)
class ShellState:
    """A run of the control shell."""

    memory: WorkingMemory
    schedule: Schedule
    seed: int
    limits: dict[str, Any]
    looks: bool
    """Whether it looks at a board before each choice."""
    position: int = 1
    """State of the schedule."""
    cycle: int = 0
    ended: str | None = None
    detail: str = ""
    trace: list[dict[str, Any]] = field(default_factory=list)
    """One entry for each cycle, and for what happened between them; JSON."""
    failures: list[dict[str, Any]] = field(default_factory=list)
    aside: dict[str, set[Values]] = field(default_factory=dict)
    """Tokens whose firing failed or did nothing: they are not offered again."""
    ids: int = 0
    effects: int = 0
    waiting: dict[int, Effect] = field(default_factory=dict)
    entry: dict[str, Any] = field(default_factory=dict)
    """The trace entry of the firing in progress."""
    batch: Batch | None = None
    """The firing in progress, when it is made in parts."""

    @property
    def accepting(self) -> bool:
        """Whether the run may end here."""
        return self.position in self.schedule.automaton.accepting


class ShellMachine:
    """Implements `metatree.durable.Machine` for control shells.

    `begin` is given: `facts`, `productions` (each `text` and `controlled`), `schedule` (text or None), `order` (names
    of productions, by the numbers in the schedule), `seed`, `limits` (`cycles`), `board` (whether there is one).

    Effects and the values of their outcomes:

        look      {memory}                             -> {changes: [[sign, id, attribute, value], …]}
        resolve   {conflict}                           -> {production} or {stop}
        fire      {production, to_add, to_remove, …}   -> {changes, add, remove, notes, ids}

    Args:
        resolver: picks among candidates.
        each: productions of which every token is a firing of its own.
        removals: productions whose logic deals with tokens to remove.
        once: productions whose logic may not happen twice: a firing of several tokens that failed is not made in parts.
        functions: those that productions may call.
    """

    name = "shell"
    version = 1

    def __init__(
        self,
        resolver: Resolver,
        *,
        each: Collection[str] = (),
        removals: Collection[str] = (),
        once: Collection[str] = (),
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.resolver = resolver
        self.functions = functions
        self.each = frozenset(each)
        self.removals = frozenset(removals)
        self.once = frozenset(once)

    def begin(self, given: dict[str, Any], now: float) -> tuple[ShellState, list[Effect]]:
        memory = WorkingMemory(functions=self.functions)
        controlled = []
        for one in given["productions"]:
            production = memory.add_production(one["text"], controlled=one["controlled"]).production
            if one["controlled"]:
                controlled.append(production.name)
        memory.add_all(_values(given["facts"]))
        text = given["schedule"]
        schedule = Schedule.parse(text, given["order"]) if text is not None else Schedule.free(controlled)
        limits = dict(given["limits"])
        state = ShellState(memory, schedule, given["seed"], limits, given["board"])
        inferred = _inferred(memory, memory)
        if inferred:
            state.trace.append({"event": "inferred", "cycle": 0, "inferred": inferred})
        return state, self._turn(state)

    def ended(self, state: ShellState) -> str | None:
        return state.ended

    def step(self, state: ShellState, event: Event) -> list[Effect]:
        if isinstance(event, Signal):
            if event.name == "limits":
                state.limits.update(event.value)
                if state.ended == "limit":
                    state.ended, state.detail = None, ""
                    return self._decide(state)
            return []
        effect = state.waiting.pop(event.effect)
        try:
            match effect.kind:
                case "look":
                    return self._on_look(state, event)
                case "resolve":
                    return self._on_resolve(state, event)
                case _:
                    return self._on_fire(state, effect, event)
        except MetatreeError as exc:  # what a firing asserted cannot be, or never comes to rest
            state.ended, state.detail = "failed", str(exc)
            return []

    # Choosing ---------------------------------------------------------------------------------------------------

    def _turn(self, state: ShellState) -> list[Effect]:
        return [self._effect(state, "look", {"memory": state.memory})] if state.looks else self._decide(state)

    def _on_look(self, state: ShellState, event: Outcome) -> list[Effect]:
        if event.error is not None:
            self._fail(state, "look", event, ())
        else:
            changes = event.value["changes"]
            if changes:
                with _recorded(state.memory) as done:
                    self._change(state, changes, {"board": True})
                told = _told(state.memory, done)
                state.trace.append({"event": "board", "cycle": state.cycle, **told})
        return self._decide(state)

    def _decide(self, state: ShellState) -> list[Effect]:
        candidates = self._candidates(state)
        if not candidates:
            self._end(state, "accepted" if state.accepting else "stuck")
            if state.ended == "stuck":
                allowed = state.schedule.allowed(state.position)
                state.detail = "; ".join(self._expected(state, name) for name in allowed)
            return []
        most = state.limits.get("cycles")
        if most is not None and state.cycle >= most:
            state.ended, state.detail = "limit", "cycles"
            return []
        if len(candidates) > 1 and isinstance(self.resolver, AskingResolver):
            return [self._effect(state, "resolve", {"conflict": self._conflict(state, candidates)})]
        return self._resolved(state, candidates, "")

    def _conflict(self, state: ShellState, candidates: tuple[CandidateProduction, ...]) -> ConflictSet:
        rng = Random(f"{state.seed}:{state.cycle}")
        return ConflictSet(state.position, state.accepting, candidates, state.cycle + 1, rng, state.memory)

    def _resolved(
        self, state: ShellState, candidates: tuple[CandidateProduction, ...], remark: str
    ) -> list[Effect]:
        chosen = self.resolver.choose(self._conflict(state, candidates))
        return self._chosen(state, candidates, chosen if isinstance(chosen, str) else None, remark)

    def _end(self, state: ShellState, ended: str) -> None:
        """End a run; one in which something failed has failed, wherever it is."""
        state.ended = ended
        if state.failures:
            first, more = state.failures[0], len(state.failures) - 1
            what = f'a firing of "{first["what"]}"' if first["tokens"] else f"a {first['what']} at the board"
            tokens = f" for {' '.join(first['tokens'])}" if first["tokens"] else ""
            state.ended = "failed"
            state.detail = f"{what} failed{tokens}: {first['error']}" + (
                f" (and {more} more)" if more else ""
            )

    def _expected(self, state: ShellState, name: str) -> str:
        if state.aside.get(name):
            return f'"{name}" failed or did nothing for the tokens it has'
        return str(why_not(state.memory, name))

    def _candidates(self, state: ShellState) -> tuple[CandidateProduction, ...]:
        candidates = []
        for name, target in state.schedule.allowed(state.position).items():
            agenda = state.memory.agenda(name)
            if name not in self.removals and agenda.to_remove:
                state.memory.commit(name, remove=list(agenda.to_remove))
            aside = state.aside.get(name, ())
            adds = len(Tokens(agenda, agenda.to_add, aside))
            removes = len(Tokens(agenda, agenda.to_remove, aside))
            if adds or removes:
                candidates.append(
                    CandidateProduction(
                        name, target, adds, removes, agenda.newest(), agenda.production.salience
                    )
                )
        return tuple(candidates)

    def _on_resolve(self, state: ShellState, event: Outcome) -> list[Effect]:
        candidates = self._candidates(state)
        if event.error is not None:
            return self._resolved(state, candidates, f"the resolver failed ({event.error})")
        return self._chosen(state, candidates, event.value.get("production"), "")

    def _chosen(
        self, state: ShellState, candidates: tuple[CandidateProduction, ...], name: str | None, remark: str
    ) -> list[Effect]:
        if name is None:
            state.detail = remark = "the resolver stopped the run"
            self._end(state, "accepted" if state.accepting else "stopped")
            state.trace.append(
                {"event": "stop", "cycle": state.cycle, "state": state.position, "remark": remark}
            )
            return []
        candidate = next((c for c in candidates if c.production == name), None)
        if candidate is None:
            offered = ", ".join(repr(c.production) for c in candidates)
            state.ended = "failed"
            state.detail = f"the resolver chose {name!r}, which was not offered: choose one of {offered}"
            return []
        return self._fire(state, candidate, candidates, remark)

    # Firing -----------------------------------------------------------------------------------------------------

    def _fire(
        self,
        state: ShellState,
        chosen: CandidateProduction,
        candidates: tuple[CandidateProduction, ...],
        remark: str,
    ) -> list[Effect]:
        state.cycle += 1
        name = chosen.production
        agenda = state.memory.agenda(name)
        aside = state.aside.get(name, ())
        state.entry = {
            "event": "fire",
            "cycle": state.cycle,
            "state": state.position,
            "candidates": [_candidate_json(one) for one in candidates],
            **_candidate_json(chosen),
            "remark": remark,
            "committed": [],
            "asserted": [],
            "retracted": [],
            "inferred": {},
            "notes": [],
            "errors": [],
        }
        adds, removes = Tokens(agenda, agenda.to_add, aside), Tokens(agenda, agenda.to_remove, aside)
        first = str(state.ids)
        if name not in self.each:
            return [self._firing(state, name, adds, removes, first)]
        every = [((token,), ()) for token in adds] + [((), (token,)) for token in removes]
        return [
            self._firing(state, name, add, remove, f"{first}.{number}")
            for number, (add, remove) in enumerate(every)
        ]

    def _firing(self, state: ShellState, name: str, add: Any, remove: Any, first_id: str) -> Effect:
        payload = {
            "production": name,
            "to_add": add,
            "to_remove": remove,
            "facts": state.memory,
            "cycle": state.cycle,
            "first_id": first_id,
        }
        return self._effect(state, f"fire {name}", payload)

    def _on_fire(self, state: ShellState, effect: Effect, event: Outcome) -> list[Effect]:
        name, entry = effect.payload["production"], state.entry
        fired = len(effect.payload["to_add"]) + len(effect.payload["to_remove"])
        if event.error is not None:
            following = self._failed(state, name, event, _tokens(effect))
        else:
            did = event.value
            with _recorded(state.memory) as changes:
                committed, withdrawn = self._commit(state, name, did)
                self._change(state, did["changes"], {"production": name, "cycle": state.cycle})
            done = _told(state.memory, changes)
            entry["committed"] += committed
            entry["asserted"] += done["asserted"]
            entry["retracted"] += done["retracted"]
            entry["inferred"] |= done["inferred"]
            entry["notes"] += [*did["notes"], *withdrawn]
            state.ids += did["ids"]
            if not committed and not done["asserted"] and not done["retracted"]:
                entry["notes"].append("it committed no token and changed no fact: its tokens are set aside")
                self._set_aside(state, name, [token for _, token in _tokens(effect)])
            following = self._dealt_with(state, name, len(did["add"]) + len(did["remove"]), fired)
        if following:
            return following
        if any(waiting.kind == effect.kind for waiting in state.waiting.values()):
            return []
        failed = len(entry["errors"]) > 0 and not entry["committed"] and not entry["asserted"]
        state.position = state.position if failed else entry["leads_to"]
        entry["state_after"] = state.position
        state.trace.append(entry)
        state.entry = {}
        return self._turn(state)

    def _failed(
        self, state: ShellState, name: str, event: Outcome, fired: list[tuple[bool, Token]]
    ) -> list[Effect]:
        """Set a token aside whose firing failed; of several, find it: what a firing that failed did is nothing."""
        batch = state.batch
        if len(fired) > 1 and name not in self.once and event.error_kind != "in_doubt":
            if batch is None:
                batch = state.batch = Batch([(adds, token.values_) for adds, token in fired])
            elif batch.size == len(batch.left):
                batch.size = 1
            else:
                batch.size, batch.narrowing = batch.size // 2, True
            return self._part(state, name)
        tokens = [token for _, token in fired]
        self._fail(state, name, event, tokens)
        state.entry["errors"].append(f"{tokens[0]}: {event.error}" if len(tokens) == 1 else event.error)
        self._set_aside(state, name, tokens)
        if batch is None:
            return []
        del batch.left[: len(fired)]
        batch.size, batch.narrowing = len(batch.left), False
        return self._part(state, name)

    def _dealt_with(self, state: ShellState, name: str, count: int, of: int) -> list[Effect]:
        """Go on with the rest of a firing that is made in parts.

        Logic that took one of several tokens has fired: the others wait for its next turn, as they always do.
        """
        batch = state.batch
        if batch is None or count < of:
            state.batch = None
            return []
        del batch.left[:of]
        batch.size = max(1, batch.size // 2) if batch.narrowing else 2 * batch.size
        return self._part(state, name)

    def _part(self, state: ShellState, name: str) -> list[Effect]:
        """Fire the next part of a batch, without tokens that earlier parts have withdrawn."""
        batch, agenda = state.batch, state.memory.agenda(name)
        assert batch is not None
        batch.left = [
            (adds, values)
            for adds, values in batch.left
            if values in (agenda.to_add if adds else agenda.to_remove)
        ]
        if not batch.left:
            state.batch = None
            return []
        batch.size = min(batch.size, len(batch.left))
        part = batch.left[: batch.size]
        add, remove = ({v: 0 for adds, v in part if adds is wanted} for wanted in (True, False))
        first_id = f"{state.ids}.{state.effects}"  # no other firing has it
        return [self._firing(state, name, Tokens(agenda, add), Tokens(agenda, remove), first_id)]

    def _set_aside(self, state: ShellState, name: str, tokens: Iterable[Token]) -> None:
        state.aside.setdefault(name, set()).update(token.values_ for token in tokens)

    def _commit(self, state: ShellState, name: str, did: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Commit tokens that still hold; another firing of the same cycle may have withdrawn some."""
        agenda = state.memory.agenda(name)
        added, removed = _values(did["add"]), _values(did["remove"])
        adds = [t for t in added if t in agenda.to_add]
        removes = [t for t in removed if t in agenda.to_remove]
        withdrawn = [t for t in added if t not in agenda.to_add]
        withdrawn += [t for t in removed if t not in agenda.to_remove]
        state.memory.commit(name, add=adds, remove=removes)
        texts = [str(agenda.token(t)) for t in (*adds, *removes)]
        return texts, [f"{agenda.token(t)} was withdrawn before it was committed" for t in withdrawn]

    def _change(self, state: ShellState, changes: list[list[Any]], provenance: dict[str, Any]) -> None:
        """Assert and retract facts."""
        for sign, *fact in changes:
            i, a, v = (from_json(part) for part in fact)
            if sign == "+":
                state.memory.add(i, a, v, provenance=provenance)
            else:
                state.memory.retract(i, a, v)

    def _fail(self, state: ShellState, what: str, event: Outcome, tokens: Sequence[Token]) -> None:
        failure = {
            "what": what,
            "cycle": state.cycle,
            "tokens": [str(token) for token in tokens[:_SHOWN]],
            "error": event.error,
            "kind": event.error_kind,
        }
        state.failures.append(failure)

    def _effect(self, state: ShellState, kind: str, payload: dict[str, Any]) -> Effect:
        effect = Effect(state.effects, kind, payload)
        state.effects += 1
        state.waiting[effect.id] = effect
        return effect


@contextmanager
def _recorded(memory: WorkingMemory) -> Iterator[list[FactChange]]:
    """Give all facts that come and go inside, what productions derive included."""
    changes: list[FactChange] = []
    stop = memory.watch(changes.append)
    try:
        yield changes
    finally:
        stop()


def _told(memory: WorkingMemory, changes: Sequence[FactChange]) -> dict[str, Any]:
    """Return the changes for the trace; `inferred` says of facts that productions justify by which."""
    return {
        "asserted": [value_text(change.fact) for change in changes if change.asserted],
        "retracted": [value_text(change.fact) for change in changes if not change.asserted],
        "inferred": _inferred(memory, [change.fact for change in changes if change.asserted]),
    }


def _inferred(memory: WorkingMemory, facts: Iterable[Fact]) -> dict[str, str]:
    return {value_text(fact): memory.inferred_by(fact) for fact in facts if memory.is_derived(fact)}


def _candidate_json(candidate: CandidateProduction) -> dict[str, Any]:
    return {
        "production": candidate.production,
        "to_add": candidate.to_add,
        "to_remove": candidate.to_remove,
        "leads_to": candidate.target,
    }


def _tokens(effect: Effect) -> list[tuple[bool, Token]]:
    """Return the tokens of a firing, and whether each is to be added."""
    adds, removes = effect.payload["to_add"], effect.payload["to_remove"]
    return [*((True, token) for token in adds), *((False, token) for token in removes)]


def _values(listed: list[list[Any]]) -> list[Values]:
    return [tuple(from_json(part) for part in one) for one in listed]


def facts_json(facts: Any) -> list[list[Any]]:
    """Return facts as `begin` takes them."""
    return [[to_json(part) for part in fact] for fact in facts]
