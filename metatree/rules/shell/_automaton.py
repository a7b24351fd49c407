"""The minimal deterministic automaton of a regular expression over symbols.

Source: the expression becomes a nondeterministic automaton (Thompson 1968), that a deterministic one (Rabin and Scott
1959), and states that no word tells apart are merged (Hopcroft 1971). States from which no accepting one can be reached
are left out, so the automaton is partial: a symbol without an arrow is not allowed, which tells states apart, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from metatree._util.graph import reachable
from metatree.errors import UserError

if TYPE_CHECKING:
    import networkx

MAX_STATES: Final = 10_000
"""Of an automaton before it is made small; counts such as {1000} multiply states."""
_MAX_WORK: Final = 4_000_000
"""How many states the sets of the deterministic automaton may hold together."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Parts one after the other; no parts: the empty word."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, at least and at most so often; None: without a bound."""

    part: Regex
    least: int
    most: int | None


Regex: TypeAlias = "Symbol | Chain | Choice | Repeat"


@dataclass(frozen=True, slots=True)
class Automaton:
    """States 1, 2, … with arrows; 1 is the start."""

    arrows: Mapping[int, Mapping[str, int]]
    """State -> symbol -> next state."""
    accepting: frozenset[int]

    start: ClassVar[int] = 1

    def allowed(self, state: int) -> dict[str, int]:
        """Return the symbols that are allowed in a state, with where they lead."""
        return dict(self.arrows[state])

    def accepts(self, word: Sequence[str]) -> bool:
        """Say whether a word leads from the start to an accepting state.

        Example:
            >>> a = Symbol("a")
            >>> minimal(Repeat(a, 2, 3)).accepts(["a", "a"]), minimal(Repeat(a, 2, 3)).accepts(["a"])
            (True, False)
        """
        state: int | None = self.start
        for symbol in word:
            state = self.arrows[state].get(symbol) if state is not None else None
        return state in self.accepting

    def graph(self) -> networkx.MultiDiGraph[int]:
        """Return the automaton as a networkx graph: nodes with `accepting`, edges with `symbol`."""
        import networkx

        graph: networkx.MultiDiGraph[int] = networkx.MultiDiGraph()
        for state in self.arrows:
            graph.add_node(state, accepting=state in self.accepting, start=state == self.start)
        for state, arrows in self.arrows.items():
            for symbol, target in arrows.items():
                graph.add_edge(state, target, key=symbol, symbol=symbol)
        return graph

    def graphviz(self) -> str:
        """Return a picture in the DOT language."""
        lines = ["digraph schedule {", "  rankdir=LR;", '  "" [shape=none];', f'  "" -> {self.start};']
        for state in self.arrows:
            shape = "doublecircle" if state in self.accepting else "circle"
            lines.append(f"  {state} [shape={shape}];")
        for state, target, label in self._labelled():
            escaped = label.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'  {state} -> {target} [label="{escaped}"];')
        return "\n".join([*lines, "}"])

    def mermaid(self) -> str:
        """Return a picture as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", "  direction LR", f"  [*] --> {self.start}"]
        for state, target, label in self._labelled():
            escaped = (
                label.replace("#", "#35;").replace(";", "#59;").replace(":", "#58;").replace('"', "#quot;")
            )
            lines.append(f"  {state} --> {target}: {escaped}")
        return "\n".join([*lines, *(f"  {state} --> [*]" for state in sorted(self.accepting))])

    def _labelled(self) -> list[tuple[int, int, str]]:
        """Return one arrow for each pair of states, with all its symbols."""
        together: dict[tuple[int, int], list[str]] = {}
        for state, arrows in self.arrows.items():
            for symbol, target in arrows.items():
                together.setdefault((state, target), []).append(symbol)
        return [(state, target, ", ".join(names)) for (state, target), names in together.items()]


@dataclass(slots=True)
class _Nfa:
    """A nondeterministic automaton under construction."""

    empty: list[list[int]] = field(default_factory=list)
    """State -> states that are reached for nothing."""
    arrows: list[tuple[str, int] | None] = field(default_factory=list)

    def state(self) -> int:
        if len(self.empty) > 10 * MAX_STATES:
            raise UserError(
                f"the schedule has more than {MAX_STATES:,} states: use smaller counts in {{n,m}}"
            )
        self.empty.append([])
        self.arrows.append(None)
        return len(self.empty) - 1

    def build(self, regex: Regex, begin: int) -> int:
        """Add an expression after a state; return the state after it."""
        match regex:
            case Symbol(name):
                end = self.state()
                self.arrows[begin] = (name, end)
                return end
            case Chain(parts):
                for part in parts:
                    begin = self.build(part, self._state_after(begin))
                return begin
            case Choice(parts):
                end = self.state()
                for part in parts:
                    self.empty[self.build(part, self._state_after(begin))].append(end)
                return end
            case Repeat(part, least, most):
                return self._repeat(part, least, most, begin)

    def _repeat(self, part: Regex, least: int, most: int | None, begin: int) -> int:
        for _ in range(least):
            begin = self.build(part, self._state_after(begin))
        if most is None:
            loop = self._state_after(begin)
            self.empty[self.build(part, self._state_after(loop))].append(loop)
            return loop
        end = self.state()
        for _ in range(most - least):
            self.empty[begin].append(end)
            begin = self.build(part, self._state_after(begin))
        self.empty[begin].append(end)
        return end

    def _state_after(self, begin: int) -> int:
        """Return a state without arrows of its own behind a state."""
        state = self.state()
        self.empty[begin].append(state)
        return state

    def closure(self, states: frozenset[int]) -> frozenset[int]:
        return frozenset(reachable(states, self.empty.__getitem__))


def minimal(regex: Regex) -> Automaton:
    """Return the smallest automaton that accepts the words of an expression.

    Raises:
        UserError: it has too many states, or accepts no word at all.
    """
    nfa = _Nfa()
    begin = nfa.state()
    end = nfa.build(regex, begin)
    first = nfa.closure(frozenset([begin]))
    arrows: dict[frozenset[int], dict[str, frozenset[int]]] = {}
    todo = deque([first])
    work = 0
    while todo:
        states = todo.popleft()
        if states in arrows:
            continue
        work += len(states)
        if len(arrows) >= MAX_STATES or work > _MAX_WORK:
            raise UserError(
                f"the schedule has more than {MAX_STATES:,} states: use smaller counts in {{n,m}}"
            )
        targets: dict[str, set[int]] = {}
        for state in sorted(states):
            arrow = nfa.arrows[state]
            if arrow is not None:
                targets.setdefault(arrow[0], set()).add(arrow[1])
        arrows[states] = {symbol: nfa.closure(frozenset(reached)) for symbol, reached in targets.items()}
        todo.extend(arrows[states].values())
    accepting = {states for states in arrows if end in states}
    return _numbered(_trimmed(arrows, accepting), accepting, first)


_Arrows: TypeAlias = dict[frozenset[int], dict[str, frozenset[int]]]


def _trimmed(arrows: _Arrows, accepting: set[frozenset[int]]) -> _Arrows:
    """Leave out states from which no accepting one can be reached."""
    sources: dict[frozenset[int], list[frozenset[int]]] = {}
    for state, targets in arrows.items():
        for target in targets.values():
            sources.setdefault(target, []).append(state)
    alive = reachable(accepting, lambda state: sources.get(state, ()))
    return {
        s: {a: t for a, t in targets.items() if t in alive} for s, targets in arrows.items() if s in alive
    }


def _merged(arrows: _Arrows, accepting: set[frozenset[int]]) -> dict[frozenset[int], int]:
    """Return the block of each state; no word distinguishes states of one block."""
    looks: dict[Any, list[frozenset[int]]] = {}
    sources: dict[str, dict[frozenset[int], list[frozenset[int]]]] = {}
    for state, targets in arrows.items():
        looks.setdefault((state in accepting, tuple(sorted(targets))), []).append(state)
        for symbol, target in targets.items():
            sources.setdefault(symbol, {}).setdefault(target, []).append(state)
    blocks = [set(states) for states in looks.values()]
    block = {state: number for number, states in enumerate(blocks) for state in states}
    todo = {(number, symbol) for number in range(len(blocks)) for symbol in sources}
    while todo:
        splitter, symbol = todo.pop()
        into = sources[symbol]
        reaching: dict[int, list[frozenset[int]]] = {}
        for state in [s for target in blocks[splitter] for s in into.get(target, ())]:
            reaching.setdefault(block[state], []).append(state)
        for number, states in reaching.items():
            if len(states) == len(blocks[number]):
                continue
            fresh = len(blocks)
            blocks.append(set(states))
            blocks[number].difference_update(states)
            block.update(dict.fromkeys(states, fresh))
            smaller = min(number, fresh, key=lambda one: len(blocks[one]))
            todo.update((fresh if (number, each) in todo else smaller, each) for each in sources)
    return block


def _numbered(arrows: _Arrows, accepting: set[frozenset[int]], first: frozenset[int]) -> Automaton:
    """Merge states that no word tells apart, and number them in the order in which they are reached."""
    if first not in arrows:
        raise UserError("the schedule allows no way to an end: look for {n,m} with nothing in it")
    block = _merged(arrows, accepting)
    member = {number: state for state, number in reversed(block.items())}
    names = {block[first]: 1}
    todo = deque([block[first]])
    result: dict[int, dict[str, int]] = {}
    while todo:
        number = todo.popleft()
        outgoing = result.setdefault(names[number], {})
        for symbol, target in arrows[member[number]].items():
            reached = block[target]
            if reached not in names:
                names[reached] = len(names) + 1
                todo.append(reached)
            outgoing[symbol] = names[reached]
    return Automaton(result, frozenset(names[block[s]] for s in accepting if s in block))
