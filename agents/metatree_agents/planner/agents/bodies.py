"""What bodies of tasks are: Python functions, tree searches, tool calls, or nothing.

{"function": true}                                   the function that the domain has for the task
{"search": "Who repaired ?thing?", "into": "said"}   a tree search; its answer is the result
{"tool": "name", "arguments": {"path": "?file"}}     a tool call; see `tool_call`
{"ask": "May ?thing be sold?"}                       a question to the person (no body: the intent waits)
{"sleep": 3600}                                      waits so many seconds since it was begun; also "?seconds"
{"until": "2026-12-01T08:00:00+01:00"}               waits until then; also "?when"
{"receive": "paid ?order"}                           waits for the message of this name; its value is the result
{"agent": "deliver(?what)", "facts": ["at(?what)"]}  a child agent with these facts; its result is the result
{}                                                   nothing: its effects alone
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metatree._util.threads import in_thread, run_beside
from metatree.errors import ToolFailed, TransientError, UserError
from metatree_agents.planner.domain.conditions import atom_text
from metatree_agents.planner.domain.domain import Domain, arguments_for
from metatree_agents.planner.domain.facts import Facts
from metatree_agents.planner.domain.given import facts_given
from metatree_agents.planner.domain.model import Action
from metatree_agents.planner.domain.network import Intent

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.tools.call_log import CallLog
    from metatree.tools.tool import Tool

Fact = tuple[Any, ...]


def _always() -> bool:
    return True


def _unheard(_: Any) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Done:
    """What the body of a task returns when it learnt facts of dynamic relations, besides its result."""

    result: Any = None
    """JSON."""
    facts: Sequence[Fact] = ()
    """Facts that hold now: relation, then arguments."""
    gone: Sequence[Fact] = ()
    """Facts that hold no longer."""
    note: str = ""
    """What the trace says of it."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a body gets besides the values of variables, in a parameter `context`."""

    agent: str
    intent: int
    goal: tuple[Any, ...]
    attempt: int
    """From 1."""
    key: str
    """Idempotency key: the same at every attempt of this intent, in every process."""
    facts: Facts
    """As they are now; to be read alone."""
    began: float = 0.0
    """When the agent was begun: tells it from one of the same name in another store."""
    again: bool = False
    """Whether a person has said that it is to be run again, though it was interrupted and may have happened."""
    since: float = 0.0
    """When this intent was first begun, in seconds since the epoch: the same at every attempt, in every process."""
    wanted: Callable[[], bool] = field(default=_always, repr=False, compare=False)
    """Says whether somebody still wants what the body does."""

    progress: Any = None
    """What an attempt before this one, perhaps in another process, reported last by `heartbeat`."""
    report: Callable[[Any], None] = field(default=_unheard, repr=False, compare=False)

    def heartbeat(self, progress: Any = None) -> None:
        """Show that the body is at work, from whichever thread, and keep how far it is for an attempt after this one.

        Args:
            progress: JSON; it is written down at most once a second, the last one wins.
        """
        self.report(progress)

    @property
    def cancelled(self) -> bool:
        """Whether the goal, or the agent, was cancelled or has failed since: a body that takes long looks at it."""
        return not self.wanted()


class TaskRefused(UserError):
    """A body was not begun: its precondition does not hold any more, or nobody wants it any more."""


class TaskCancelled(TaskRefused):
    """A body was cancelled while it was at work; it may have done some of it."""


@dataclass
class World:
    """What bodies of tasks may use.

    Args:
        domain: its functions and readers.
        tree: searched by tasks that are searches.
        search_options: arguments of `asearch`, such as `router`.
        tools: for tasks that are tool calls.
        calls: remembers tool calls; None in tests without a store.
        permit: decides on tools that change something; without it they are refused.
    """

    domain: Domain
    tree: Tree | None = None
    search_options: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Tool] = ()
    calls: CallLog | None = None
    permit: Callable[[Tool, Mapping[str, Any]], bool | Awaitable[bool]] | None = None

    async def run(self, action: Action, intent: Intent, context: TaskContext) -> dict[str, Any]:
        """Carry a task out and return its result and the facts that it learnt, JSON.

        Raises:
            UserError: the task names something that is not there.
            Exception: what the body raises.
        """
        binding = dict(intent.binding)
        does = action.does
        if "function" in does:
            done = await self._function(action, binding, context)
        elif "search" in does:
            done = await self._search(action, binding, context)
        elif "tool" in does:
            done = await self._tool(action, binding, context)
        else:
            done = Done()
        facts = [[True, fact[0], fact[1:]] for fact in facts_given(done.facts)]
        facts += [[False, fact[0], fact[1:]] for fact in facts_given(done.gone)]
        for _, relation, terms in facts:
            known = context.facts.library.relations.get(relation)
            if known is None or not known.dynamic or known.arity != len(terms):
                raise UserError(
                    f"task {action.name!r} returned the fact {atom_text((relation, *terms))}: a body changes"
                    " dynamic relations only, with as many arguments as they have"
                )
        return {"result": done.result, "facts": facts} | ({"note": done.note} if done.note else {})

    async def _function(self, action: Action, binding: Mapping[str, Any], context: TaskContext) -> Done:
        function = self.domain.functions.get(action.name)
        if function is None:
            raise UserError(
                f"task {action.name!r} is a function that this process does not have: run it with its domain"
            )
        arguments = arguments_for(function, binding, {"context": context})
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            value = await in_thread(function, **arguments)
            if inspect.isawaitable(value):
                value = await value
        return value if isinstance(value, Done) else Done(value)

    async def _search(self, action: Action, binding: Mapping[str, Any], context: TaskContext) -> Done:
        from metatree import aresume, asearch
        from metatree.errors import RunExists

        if self.tree is None:
            raise UserError(
                f"task {action.name!r} searches a tree, and none was given: `Agents(…, tree=tree)`"
            )
        question = fill_in(str(action.does["search"]), binding)
        run_id = f"{context.agent}-{context.key}".replace(":", "-")
        options = dict(self.search_options)
        tree = self.tree
        try:
            # beside the loop of the agents, with the parts that the user gave: one that computes must not hold them
            result = await run_beside(lambda: asearch([question], tree=tree, run_id=run_id, **options))
        except RunExists:
            result = await run_beside(lambda: aresume(run_id, tree=tree, **options))
        if result.ended not in ("answered", "exhausted"):
            raise TransientError(f"the search ended as {result.ended}: {result.detail}")
        if not result.answer:
            raise ToolFailed(f"nothing was found for {question!r}")
        into = action.does.get("into")
        facts = [(into, *binding_of(action, binding), result.answer)] if into else []
        return Done({"answer": result.answer, "nodes": [node.id for node in result.nodes]}, facts)

    async def _tool(self, action: Action, binding: Mapping[str, Any], context: TaskContext) -> Done:
        from metatree.tools.call_log import made_before
        from metatree_agents.planner.agents._tool_call import call_tool

        name = str(action.does["tool"])
        tool = next((one for one in self.tools if one.id == name), None)
        if tool is None:
            known = ", ".join(one.id for one in self.tools) or "none"
            raise UserError(
                f"task {action.name!r} calls the tool {name!r}, which was not given (tools: {known})"
            )
        arguments = {
            key: binding.get(value, value) if isinstance(value, str) else value
            for key, value in dict(action.does.get("arguments", {})).items()
        }
        made = await call_tool(
            tool,
            arguments,
            tree=self.tree,
            calls=self.calls,
            permit=self.permit,
            key=context.key,
            run=context.agent,
            intent=f"{context.key} {context.began}",
            again=context.again,
        )
        result = str(made.result.get("text", made.result))
        note = f"{name} was not called: {made_before(made.origin())}" if made.reused else ""
        into = action.does.get("into")
        facts = [(into, *binding_of(action, binding), result)] if into else []
        return Done(result, facts, note=note)


def binding_of(action: Action, binding: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of the goal that a task reached."""
    return tuple(binding.get(term, term) if isinstance(term, str) else term for term in action.terms)


def fill_in(text: str, binding: Mapping[str, Any]) -> str:
    """Return a text with the values of the variables that it names, longest names first."""
    for name in sorted(binding, key=len, reverse=True):
        text = text.replace(name, str(binding[name]))
    return text
