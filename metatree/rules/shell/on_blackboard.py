"""A blackboard for the control shell: its items as facts, and the shell's facts, tokens and firings as items.

An item is read as triples `(item relation value)`, so a production can react to a question without an answer:

    ((<q> @section questions) (<q> question <text>) -{(<q> answer <a>)} -> "answer")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from metatree.errors import UserError
from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.values import Fact, checked, written

READ_SECTIONS: Final = ("questions", "requests", "trajectories")
MAX_TOKENS_SHOWN: Final = 50


class BoardItem(Protocol):
    """An item that was added, changed or removed."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def agent(self) -> str:
        """Who wrote it."""
        ...

    @property
    def removed(self) -> bool:
        """Whether it is gone."""
        ...

    @property
    def changed(self) -> int:
        """The version of the board when it was last changed."""
        ...


class Triples(Protocol):
    """What a blackboard must be able to do: yield triples and changes, and take items."""

    # Callables, since a method whose keywords are spelled out fits no other description of keywords.

    @property
    def changes(self) -> Callable[..., Iterable[BoardItem]]:
        """`changes(since, sections=…)`: the items added, changed or removed after a version, in this order."""
        ...

    @property
    def triples(self) -> Callable[..., Iterable[tuple[str, str, Any]]]:
        """`triples(item=…)`: what an item says."""
        ...

    @property
    def add(self) -> Callable[..., object]:
        """`add(section, data, id=…, agent=…, run=…)`: add an item; the same one under its id is added once."""
        ...

    @property
    def add_trajectories(self) -> Callable[..., object]:
        """`add_trajectories(data, id=…, …)`: add a step of what an agent did."""
        ...

    @property
    def update(self) -> Callable[..., object]:
        """`update(item_id, data)`: change what an item says; raises UserError when there is none of this id."""
        ...

    @property
    def remove(self) -> Callable[..., object]:
        """`remove(item_id)`: remove an item."""
        ...


class BoardBridge:
    """Connects a blackboard with a control shell; implements `metatree.rules.shell.control.Board`.

    Args:
        board: a `metatree.Blackboard`, or anything with these methods.
        sections: what is read as facts. Items that the shell itself wrote are not.
        agent: the name that the shell writes under.
        facts: whether the facts of working memory are shown, in the section `facts`.
        tokens: whether the tokens of each production are shown, in the section `tokens`.
    """

    def __init__(
        self,
        board: Triples,
        *,
        sections: Sequence[str] = READ_SECTIONS,
        agent: str = "shell",
        facts: bool = True,
        tokens: bool = True,
    ) -> None:
        self.board = board
        self._sections = tuple(sections)
        self._agent = agent
        self._shows_facts = facts
        self._shows_tokens = tokens
        self._since = 0
        self._held: dict[str, dict[Fact, None]] | None = None
        self._shown: dict[Fact, str] = {}
        self._tokens: dict[str, dict[str, Any]] = {}

    def look(self, memory: WorkingMemory) -> list[tuple[str, Fact]]:
        """Return what changed since the last look; the first look compares the board with what memory has of it."""
        if self._held is None:
            self._held = {}
            for fact in memory:
                if (memory.provenance(fact) or {}).get("board"):
                    self._held.setdefault(str(fact[0]), {})[fact] = None
        changes: list[tuple[str, Fact]] = []
        for item in self.board.changes(self._since, sections=self._sections):
            self._since = item.changed
            if item.agent == self._agent:
                continue
            now = {} if item.removed else dict.fromkeys(facts_of_item(self.board.triples(item=item.id)))
            before = self._held.get(item.id, {})
            changes += [("-", fact) for fact in before if fact not in now]
            changes += [("+", fact) for fact in now if fact not in before]
            self._held[item.id] = now
        return changes

    def fired(self, run_id: str, entry: Mapping[str, Any]) -> None:
        """Write an entry of the trace as a step of a trajectory."""
        what = entry.get("production") or entry["event"]
        did = [*entry.get("notes", ()), *(f"+{fact}" for fact in entry.get("asserted", ()))]
        did += [f"-{fact}" for fact in entry.get("retracted", ())]
        step = {"step": entry["cycle"], "subtask": what, "action_representation": "; ".join(did), **entry}
        about = {"agent": self._agent, "run": run_id, "step": entry["cycle"]}
        self.board.add_trajectories(step, id=f"{run_id}:{entry['event']}:{entry['cycle']}", **about)

    def settled(self, run_id: str, memory: WorkingMemory) -> None:
        """Show the facts and the tokens as they are now."""
        about = {"agent": self._agent, "run": run_id}
        if self._shows_facts:
            self._show_facts(run_id, memory, about)
        if self._shows_tokens:
            self._show_tokens(run_id, memory, about)

    def _show_facts(self, run_id: str, memory: WorkingMemory, about: Mapping[str, Any]) -> None:
        now = {
            fact: f"{run_id}:fact:{memory.event_of(fact)}"
            for fact in memory
            if memory.is_derived(fact) or not (memory.provenance(fact) or {}).get("board")
        }
        for fact, item in self._shown.items():
            if now.get(fact) != item:
                self.board.remove(item)
        for fact, item in now.items():
            if self._shown.get(fact) != item:
                data = dict(zip(("id", "attribute", "value"), map(_plain, fact), strict=True))
                self.board.add("facts", {**data, "derived": memory.is_derived(fact)}, id=item, **about)
        self._shown = now

    def _show_tokens(self, run_id: str, memory: WorkingMemory, about: Mapping[str, Any]) -> None:
        for name in memory.productions:
            agenda = memory.agenda(name)
            data = {
                "production": name,
                "to_add": [str(agenda.token(v)) for v in list(agenda.to_add)[:MAX_TOKENS_SHOWN]],
                "to_remove": [str(agenda.token(v)) for v in list(agenda.to_remove)[:MAX_TOKENS_SHOWN]],
                "holding": len(agenda),
            }
            if self._tokens.get(name) == data:
                continue
            item = f"{run_id}:tokens:{name}"
            try:
                self.board.update(item, data)
            except UserError:  # it is not there yet
                self.board.add("tokens", data, id=item, **about)
            self._tokens[name] = data


def facts_of_item(triples: Iterable[tuple[str, str, Any]]) -> list[Fact]:
    """Return triples as facts; what says nothing (None) or cannot be in a fact is left out."""
    found: list[Fact] = []
    for item, relation, value in triples:
        if value is None:
            continue
        try:
            found.append((item, relation, checked(value)))
        except UserError:
            continue
    return found


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else written(value)
