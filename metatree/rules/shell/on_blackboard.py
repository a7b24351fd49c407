"""A blackboard for the control shell: its items as facts, and the shell's facts, tokens and firings as items.

An item is read as triples `(item relation value)`, so a production can react to a question without an answer:

    ((<q> @section questions) (<q> question <text>) -{(<q> answer <a>)} -> "answer")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from metatree.errors import UserError
from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.values import Fact, check_value, value_text

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard

READ_SECTIONS: Final = ("questions", "requests", "trajectories")
MAX_TOKENS_SHOWN: Final = 50


class BoardBridge:
    """Connects a blackboard with a control shell.

    Args:
        board: what it is connected with.
        sections: what is read as facts. Items that the shell itself wrote are not.
        agent: the name that the shell writes under.
        facts: whether the facts of working memory are shown, in the section `facts`.
        tokens: whether the tokens of each production are shown, in the section `tokens`.
    """

    def __init__(
        self,
        board: Blackboard,
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
        self._facts_of: dict[str, dict[Fact, None]] | None = None
        """Item -> the facts that working memory has of it."""
        self._items_of_facts: dict[Fact, str] = {}
        self._tokens: dict[str, dict[str, Any]] = {}

    def look(self, memory: WorkingMemory) -> list[tuple[str, Fact]]:
        """Return what changed since the last look; the first look compares the board with what memory has of it."""
        if self._facts_of is None:
            self._facts_of = {}
            for fact in memory:
                if (memory.provenance(fact) or {}).get("board"):
                    self._facts_of.setdefault(str(fact[0]), {})[fact] = None
        changes: list[tuple[str, Fact]] = []
        for item in self.board.changes(self._since, sections=self._sections):
            self._since = item.changed
            if item.agent == self._agent:
                continue
            now = {} if item.removed else dict.fromkeys(facts_of_item(self.board.triples(item=item.id)))
            before = self._facts_of.get(item.id, {})
            changes += [("-", fact) for fact in before if fact not in now]
            changes += [("+", fact) for fact in now if fact not in before]
            self._facts_of[item.id] = now
        return changes

    def fired(self, run_id: str, entry: Mapping[str, Any]) -> None:
        """Write an entry of the trace as a step of a trajectory."""
        what = entry.get("production") or entry["event"]
        did = [*entry.get("notes", ()), *(f"+{fact}" for fact in entry.get("asserted", ()))]
        did += [f"-{fact}" for fact in entry.get("retracted", ())]
        step = {"step": entry["cycle"], "subtask": what, "action_representation": "; ".join(did), **entry}
        item = f"{run_id}:{entry['event']}:{entry['cycle']}"
        self.board.add_trajectories(step, id=item, agent=self._agent, run=run_id, step=entry["cycle"])

    def settled(self, run_id: str, memory: WorkingMemory) -> None:
        """Show the facts and the tokens as they are now."""
        if self._shows_facts:
            self._show_facts(run_id, memory)
        if self._shows_tokens:
            self._show_tokens(run_id, memory)

    def _show_facts(self, run_id: str, memory: WorkingMemory) -> None:
        now = {
            fact: f"{run_id}:fact:{memory.event_of(fact)}"
            for fact in memory
            if memory.is_derived(fact) or not (memory.provenance(fact) or {}).get("board")
        }
        for fact, item in self._items_of_facts.items():
            if now.get(fact) != item:
                self.board.remove(item)
        for fact, item in now.items():
            if self._items_of_facts.get(fact) != item:
                data = dict(zip(("id", "attribute", "value"), map(_plain, fact), strict=True))
                self.board.add(
                    "facts",
                    {**data, "derived": memory.is_derived(fact)},
                    id=item,
                    agent=self._agent,
                    run=run_id,
                )
        self._items_of_facts = now

    def _show_tokens(self, run_id: str, memory: WorkingMemory) -> None:
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
                self.board.add("tokens", data, id=item, agent=self._agent, run=run_id)
            self._tokens[name] = data


def facts_of_item(triples: Iterable[tuple[str, str, Any]]) -> list[Fact]:
    """Return triples as facts; what says nothing (None) or cannot be in a fact is left out."""
    facts: list[Fact] = []
    for item, relation, value in triples:
        if value is None:
            continue
        try:
            facts.append((item, relation, check_value(value)))
        except UserError:
            continue
    return facts


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else value_text(value)
