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

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from metatree_memory_tools.reading.bounded_yaml import load_yaml

from metatree._util import toml_text
from metatree._util.named_file import read_named
from metatree.errors import MissingExtra, UserError
from metatree_agents.planner.domain._places import located
from metatree_agents.planner.domain.conditions import group_of
from metatree_agents.planner.domain.syntax import PlannerSyntaxError

_MOST_VALUES: Final = 1_000_000
"""Of a domain in YAML: names and goals are texts, of whatever stands there."""


def read_file(path: str | Path) -> dict[str, Any]:
    """Return what a TOML or YAML file holds.

    Raises:
        UserError: it cannot be read, or its ending is neither `.toml`, `.yaml` nor `.yml`.
        MissingExtra: it is YAML and pyyaml is not installed.
    """
    file = Path(path)
    try:
        text = read_named(file).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as exc:
        raise UserError(f"cannot read {str(path)!r}: {exc.strerror or exc}; check the path") from exc
    except UnicodeDecodeError as exc:
        raise UserError(f"{str(path)!r} is not UTF-8 text: convert it first") from exc
    try:
        match file.suffix.lower():
            case ".toml":
                data: Any = toml_text.loads(text)
            case ".yaml" | ".yml":
                data = _yaml(text)
            case other:
                raise UserError(
                    f"{str(path)!r}: a domain is a .toml or .yaml file, not {other or 'one without ending'!r}"
                )
    except ValueError as exc:
        said, line, column = _place_in(str(exc), text)
        raise UserError(f"{path}:{line}:{column}: {said}") from exc
    except RecursionError as exc:
        raise UserError(f"{str(path)!r}: too many brackets are inside one another: take them apart") from exc
    if not isinstance(data, dict):
        raise UserError(f"{str(path)!r} holds no table with `relations`, `tasks` and `rules`")
    return data


_PLACE: Final = re.compile(r",? *\(?(?:at|in \"[^\"]*\",) line (\d+), column (\d+)\)?")


def _place_in(message: str, text: str) -> tuple[str, int, int]:
    """Return what a reader of TOML or YAML says, and its last place, or the end of the text where it has none."""
    if places := _PLACE.findall(message):
        return _PLACE.sub("", message), int(places[-1][0]), int(places[-1][1])
    lines = text.splitlines() or [""]
    return (
        message.replace(" (at end of document)", ", at the end of the file"),
        len(lines),
        len(lines[-1]) + 1,
    )


def _yaml(text: str) -> Any:
    try:  # an extra, since TOML needs nothing and most domains are Python
        import yaml
    except ImportError as exc:
        raise MissingExtra("planner", what="a domain in YAML") from exc
    try:
        return load_yaml(text, most_values=_MOST_VALUES)
    except yaml.YAMLError as exc:
        raise ValueError(" ".join(str(exc).split())) from exc


def facts_of(texts: Iterable[str], source: str = "") -> list[tuple[Any, ...]]:
    """Return facts that are written as `relation(term, …)`; raises PlannerSyntaxError, BadDefinition."""
    facts = []
    for number, text in enumerate(texts):
        try:
            name, terms = group_of(text)
        except PlannerSyntaxError as exc:
            if not source:
                raise
            raise located(source, ("facts", number), f"fact {number + 1}: ", exc, text) from exc
        facts.append((name.lower(), *terms))
    return facts
