"""Domains in TOML and YAML files.

name = "delivery"
goals = { "look" = { again = true } }

[relations]
at = 2                                    # arity
open = { arity = 1, dynamic = true }
near = { parameters = ["?a", "?b"], definition = "(or (road ?a ?b) (road ?b ?a))" }

[[tasks]]
goal = "move(?t, ?to)"
when = "(at ?t ?from)"
effect = "(and (not (at ?t ?from)) (at ?t ?to))"

[[rules]]
goal = "deliver(?p, ?to)"
when = "(at ?p ?from)"
subgoals = ["move(truck, ?from)", "load(?p)", "move(truck, ?to)", "unload(?p)"]
order = true                              # or false, or pairs such as [[0, 1], [0, 2]]

facts = ["at(truck, depot)"]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from metatree.errors import MissingExtra, UserError
from metatree_agents.planner.domain.conditions import condition_of, group_of
from metatree_agents.planner.domain.model import BadDefinition, Library, Relation, checked_name

if TYPE_CHECKING:
    from metatree_agents.planner.domain._file_tables import RelationTable


class Declarations(Protocol):
    """What a file is read into; `Domain` is one, whose methods take the keys of a table as their arguments."""

    library: Library

    def relation(self, name: str, arity: int, *, dynamic: bool = False) -> object:
        """Declare a relation."""
        ...

    def goal(self, name: str, *, again: bool) -> None:
        """Say whether a goal is done each time that it is asked for."""
        ...

    def task(self, goal: str, *args: Any, **given: Any) -> object:
        """Declare a task; raises BadDefinition, PlannerSyntaxError."""
        ...

    def rule(self, goal: str, *args: Any, **given: Any) -> object:
        """Declare a rule; raises BadDefinition, PlannerSyntaxError."""
        ...

    def check(self) -> None:
        """Check that everything fits together; raises BadDefinition."""
        ...


def read_file(path: str | Path) -> dict[str, Any]:
    """Return what a TOML or YAML file holds.

    Raises:
        UserError: it cannot be read, or its ending is neither `.toml`, `.yaml` nor `.yml`.
        MissingExtra: it is YAML and pyyaml is not installed.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise UserError(f"cannot read {str(path)!r}: {exc.strerror or exc}; check the path") from exc
    except UnicodeDecodeError as exc:
        raise UserError(f"{str(path)!r} is not UTF-8 text: convert it first") from exc
    try:
        match file.suffix.lower():
            case ".toml":
                import tomllib

                data: Any = tomllib.loads(text)
            case ".yaml" | ".yml":
                data = _yaml(text)
            case other:
                raise UserError(
                    f"{str(path)!r}: a domain is a .toml or .yaml file, not {other or 'one without ending'!r}"
                )
    except ValueError as exc:
        raise UserError(f"{str(path)!r}: {exc}") from exc
    except RecursionError as exc:
        raise UserError(f"{str(path)!r}: too many brackets are inside one another: take them apart") from exc
    if not isinstance(data, dict):
        raise UserError(f"{str(path)!r} holds no table with `relations`, `tasks` and `rules`")
    return data


def _yaml(text: str) -> Any:
    try:  # an extra, since TOML needs nothing and most domains are Python
        import yaml
    except ImportError as exc:
        raise MissingExtra("planner", what="a domain in YAML") from exc
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(" ".join(str(exc).split())) from exc


def fill(domain: Declarations, data: Mapping[str, Any], source: str = "") -> None:
    """Add what a file holds to a domain, and check it.

    Raises:
        BadDefinition: a key is unknown, a value has another type, or the parts do not fit together.
    """
    # Not above: pydantic brings many objects, which the garbage collector looks through: a plan of 1,500 steps for a
    # domain in Python, which has no file, took 15 % longer.
    from pydantic import ValidationError

    from metatree_agents.planner.domain._file_tables import DomainFile, problem_of

    where = source or "the domain"
    try:
        file = DomainFile.model_validate(data)
    except ValidationError as exc:
        raise BadDefinition(f"{where}: {problem_of(exc)}") from exc
    what = where
    try:
        if file.name is not None:
            domain.library.name = file.name
        for name, relation in file.relations.items():
            what = f"{where}: relation {name!r}"
            _declare(domain, name, relation)
        for name, goal in file.goals.items():
            domain.goal(name, again=goal.again)
        for declare, tables in ((domain.task, file.tasks), (domain.rule, file.rules)):
            for number, table in enumerate(tables, start=1):
                what = f"{where}: {declare.__name__} {number}"
                declare(**table.model_dump(exclude_unset=True))
        what = where
        domain.check()
    except UserError as exc:
        raise BadDefinition(f"{what}: {exc}") from exc


def _declare(domain: Declarations, name: str, table: RelationTable) -> None:
    if table.definition is not None:
        parameters = tuple(one.lower() for one in table.parameters)
        condition = condition_of(table.definition)
        checked_name(name, "a relation")
        domain.library.add(Relation(name.lower(), len(parameters), False, parameters, condition))
    elif table.arity is not None:
        domain.relation(name, table.arity, dynamic=table.dynamic)
    else:
        raise BadDefinition("its `arity` is missing")


def facts_of(texts: Iterable[str], source: str = "") -> list[tuple[Any, ...]]:
    """Return facts that are written as `relation(term, …)`; raises PlannerSyntaxError."""
    return [(name.lower(), *terms) for name, terms in (group_of(text, source) for text in texts)]
