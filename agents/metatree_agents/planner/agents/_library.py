"""The library as an action tree, routers that order candidates, and fallbacks that propose rules.

library_tree(library)         goals as nodes, with their rules and tasks below them
router_order(router)          orders candidates of equal cost as a router chooses among their nodes
model_proposals(tool_caller)  a model proposes a rule from existing rules and tasks
person_proposals(ask)         a person does
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from metatree._util.threads import run_apart
from metatree.errors import BadModelAnswer, UserError
from metatree.node import Node
from metatree.protocols import Option, RouteRequest, ToolRequest, ToolSpec
from metatree_agents.planner.agents._driver import Propose
from metatree_agents.planner.domain.candidates import Candidate
from metatree_agents.planner.domain.conditions import atom_text, condition_of, condition_text, group_of
from metatree_agents.planner.domain.model import Action, Goal, Library, sequence
from metatree_agents.planner.planning.planning import Order

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.protocols import SupportsFill, SupportsRoute

_TRIES: Final = 3


def library_tree(library: Library) -> Tree:
    """Return a library as a tree in memory: a node for each goal, its rules and tasks below it.

    Example:
        >>> from metatree_agents.planner import Domain
        >>> home = Domain("home")
        >>> _ = home.task("greet(?who)", title="Say hello", description="Greets somebody politely.")
        >>> tree = library_tree(home.library)
        >>> [node.title for node in tree.children("greet")]
        ['Say hello']
    """
    from metatree import Tree

    tree = Tree.create(":memory:")
    for goal in dict.fromkeys(action.goal for action in library.actions.values()):
        actions = library.for_goal(goal)
        kind = "compound" if actions[0].kind == "rule" else "primitive"
        tree.add(
            Node(id=goal, title=goal, description=f"{kind} goal, {len(actions)} ways", kind="goal"),
            parent=tree.root,
        )
        for action in actions:
            tree.add(action_node(action), parent=goal)
    return tree


def action_node(action: Action) -> Node:
    """Return a rule or task as a node; its content is its definition."""
    lines = [f"{action.kind} {action.name}", f"goal: {atom_text((action.goal, *action.terms))}"]
    lines.append(f"when: {condition_text(action.precondition)}")
    lines += [f"sub-goal: {atom_text(goal)}" for goal in action.subgoals]
    lines += [
        f"effect: {atom_text((name, *terms)) if adds else f'not {atom_text((name, *terms))}'}"
        for adds, name, terms in action.effects
    ]
    return Node(
        id=f"{action.goal}/{action.name}",
        title=action.title or action.name,
        description=action.description or "; ".join(lines[1:]),
        content="\n".join(lines),
        kind=action.kind,
        provenance=dict(action.provenance),
    )


def router_order(router: SupportsRoute) -> Order:
    """Return a function that asks a router which of several candidates of equal cost should be tried first.

    What it rules out comes last; a router that fails or chooses nothing leaves the order as it was drawn.
    """

    def order(goal: Goal, equal: Sequence[Candidate]) -> Sequence[Candidate]:
        options = []
        for number, candidate in enumerate(equal):
            node = action_node(candidate.action)
            options.append(Option(str(number), candidate.key, f"{node.title}: {node.description}"))
        request = RouteRequest(
            questions=(f"Which way should be tried first to reach the goal {atom_text(goal)}?",),
            context="",
            node=Node(id=str(goal[0]), title=atom_text(goal), kind="goal"),
            options=tuple(options),
        )
        try:
            decision = run_apart(lambda: router.route(request))
        except Exception:
            return equal
        known = {option.id for option in options}
        first = [int(decision.choice)] if decision.choice in known else []
        last = [int(one) for one in decision.unviable if one in known and int(one) not in first]
        middle = [n for n in range(len(equal)) if n not in first and n not in last]
        return [equal[n] for n in (*first, *middle, *last)]

    return order


_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "possible": {"type": "boolean"},
        "when": {"type": "string"},
        "subgoals": {"type": "array", "items": {"type": "string"}},
        "title": {"type": "string"},
        "why": {"type": "string"},
    },
    "required": ["possible", "when", "subgoals", "title", "why"],
    "additionalProperties": False,
}


def model_proposals(tool_caller: SupportsFill) -> Propose:
    """Return a fallback in which a model makes a rule of sub-goals that the library reaches.

    A proposal that is out of form is shown back to the model, at most twice.
    """

    async def propose(goal: Goal, library: Library, why: str) -> Sequence[Action]:
        spec = ToolSpec("rule", "rule", "Make a rule of sub-goals for a goal.", "exploratory", _SCHEMA)
        node = Node(id="goal", title=atom_text(goal), description=why[:500])
        question = (
            f"Which existing goals, in which order, reach {atom_text(goal)}? Write them as name(value, …); variables"
            f" begin with ? and stand for the arguments {_variables(goal)} or occur in `when`, a condition such as"
            " (and (at ?x ?y)). If nothing reaches it, it is not possible."
        )
        errors: tuple[str, ...] = ()
        for _ in range(_TRIES):
            try:
                proposal = await tool_caller.fill(
                    ToolRequest(spec, node, (question,), library_text(library), errors)
                )
                if not proposal.get("possible"):
                    return []
                return [rule_from(goal, proposal, {"by": "model", "why": str(proposal.get("why", ""))[:500]})]
            except (BadModelAnswer, UserError) as exc:
                errors = (*errors, str(exc))
        return []

    return propose


def person_proposals(ask: Callable[[str], str | Awaitable[str]]) -> Propose:
    """Return a fallback in which a person names the sub-goals, separated by `;`; an empty answer is none."""

    async def propose(goal: Goal, library: Library, why: str) -> Sequence[Action]:
        answer = ask(
            f"Nothing reaches {atom_text(goal)} ({why}). Which goals, separated by ;, do? Known:\n"
            + library_text(library)
        )
        proposal = answer if isinstance(answer, str) else await answer
        parts = [part.strip() for part in proposal.split(";") if part.strip()]
        return [rule_from(goal, {"subgoals": parts}, {"by": "person"})] if parts else []

    return propose


def rule_from(goal: Goal, proposal: dict[str, Any], provenance: dict[str, Any]) -> Action:
    """Return a proposed rule for a goal; its head has a variable for each argument.

    Raises:
        BadModelAnswer: the sub-goals are no list of texts.
        PlannerSyntaxError: a sub-goal or the condition cannot be read.
    """
    listed = proposal.get("subgoals")
    if not isinstance(listed, list) or not listed or not all(isinstance(one, str) for one in listed):
        raise BadModelAnswer(
            f"subgoals must be a list of texts such as name(value), not {json.dumps(listed)[:200]}"
        )
    goals = tuple((name, *terms) for name, terms in (group_of(one) for one in listed))
    title = " ".join(str(proposal.get("title") or f"Reach {goal[0]}").split())[:200]
    return Action(
        f"proposed {goal[0]}",
        "rule",
        goal[0],
        tuple(f"?arg{n}" for n in range(1, len(goal))),
        condition_of(str(proposal.get("when") or ""), "when"),
        0.0,
        title,
        "",
        subgoals=goals,
        order=sequence(len(goals)),
        provenance=provenance,
    )


def library_text(library: Library) -> str:
    """Return the goals of a library with their ways, one line for each."""
    lines = []
    for action in library.actions.values():
        description = f": {action.description}" if action.description else ""
        lines.append(
            f"{atom_text((action.goal, *action.terms))} by {action.kind} {action.name}, when"
            f" {condition_text(action.precondition)}{description}"
        )
    return "\n".join(lines)


def _variables(goal: Goal) -> str:
    return ", ".join(f"?arg{n} = {value}" for n, value in enumerate(goal[1:], start=1)) or "(none)"
