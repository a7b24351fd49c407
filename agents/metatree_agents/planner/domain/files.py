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

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from metatree.errors import MissingExtra, UserError
from metatree_agents.planner.domain.conditions import condition_of, group_of
from metatree_agents.planner.domain.model import BadDefinition, Library, Relation, checked_name

_BOTH = frozenset({"goal", "name", "when", "cost", "title", "description"})
_TASK = _BOTH | {"effect", "does", "repeatable", "attempts", "backoff_s", "timeout_s"}
_RULE = _BOTH | {"subgoals", "order"}
_TOP = frozenset({"name", "relations", "goals", "tasks", "rules", "facts", "goal"})


class Declarations(Protocol):
    """What a file is read into; `Domain` is one, whose methods take the keys of a table as their arguments."""

    library: Library

    def relation(self, name: str, arity: int, *, dynamic: bool = False) -> object:
        """Declare a relation."""
        ...

    def goal(self, name: str, *, again: bool) -> None:
        """Say whether a goal is done each time that it is asked for."""
        ...

    def task(self, goal: str, *args: Any, **said: Any) -> object:
        """Declare a task; raises BadDefinition, PlannerSyntaxError."""
        ...

    def rule(self, goal: str, *args: Any, **said: Any) -> object:
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
    try:
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
    where = source or "the domain"
    _known(data, _TOP, where)
    if "name" in data:
        domain.library.name = str(data["name"])
    for name, said in _table(data, "relations", where).items():
        _relation(domain, str(name), said, where)
    for name, said in _table(data, "goals", where).items():
        _known(said, frozenset({"again"}), f"{where}: goal {name!r}")
        domain.goal(str(name), again=bool(said.get("again", False)))
    for kind, keys in (("tasks", _TASK), ("rules", _RULE)):
        listed = data.get(kind, [])
        if not isinstance(listed, list):
            raise BadDefinition(f"{where}: `{kind}` must be a list of tables")
        for number, said in enumerate(listed, start=1):
            what = f"{where}: {kind[:-1]} {number}"
            if not isinstance(said, dict) or not isinstance(said.get("goal"), str):
                raise BadDefinition(f'{what} names no goal: add `goal = "name(?variable)"`')
            _known(said, keys, what)
            try:
                _action(domain, kind, dict(said))
            except UserError as exc:
                raise BadDefinition(f"{what}: {exc}") from exc
    domain.check()


def _action(domain: Declarations, kind: str, said: dict[str, Any]) -> None:
    goal = said.pop("goal")
    if kind == "tasks":
        domain.task(goal, **said)
        return
    order = said.get("order", True)
    if not isinstance(order, bool):
        said["order"] = [tuple(pair) for pair in order]
    domain.rule(goal, **said)


def facts_of(data: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the facts that a file lists."""
    found = []
    for text in data.get("facts", ()):
        name, terms = group_of(str(text))
        found.append((name.lower(), *terms))
    return found


def _relation(domain: Declarations, name: str, said: Any, where: str) -> None:
    what = f"{where}: relation {name!r}"
    if isinstance(said, int) and not isinstance(said, bool):
        domain.relation(name, said)
        return
    if not isinstance(said, Mapping):
        raise BadDefinition(f"{what}: give its arity, or a table")
    _known(said, frozenset({"arity", "dynamic", "parameters", "definition"}), what)
    if "definition" in said:
        parameters = tuple(str(one).lower() for one in said.get("parameters", ()))
        domain.library.add(
            Relation(
                checked_name(name, "a relation").lower(),
                len(parameters),
                False,
                parameters,
                condition_of(str(said["definition"]), what),
            )
        )
    elif isinstance(said.get("arity"), int):
        domain.relation(name, said["arity"], dynamic=bool(said.get("dynamic", False)))
    else:
        raise BadDefinition(f"{what}: its `arity` is missing")


def _table(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = data.get(key, {})
    if not isinstance(found, Mapping):
        raise BadDefinition(f"{where}: `{key}` must be a table")
    return found


def _known(said: Any, keys: frozenset[str], where: str) -> None:
    if not isinstance(said, Mapping):
        raise BadDefinition(f"{where}: expected a table")
    for key in said:
        if key not in keys:
            raise BadDefinition(f"{where}: unknown key {key!r}; known are {', '.join(sorted(keys))}")
