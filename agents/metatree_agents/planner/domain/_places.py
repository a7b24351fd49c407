"""Where a value stands in a domain's file, for messages: what reads TOML and YAML does not say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from metatree.errors import UserError
from metatree_agents.planner.domain._effects import effects_of
from metatree_agents.planner.domain.conditions import condition_of, group_of
from metatree_agents.planner.domain.model import BadDefinition
from metatree_agents.planner.domain.syntax import PlannerSyntaxError

Steps = Sequence[str | int]
"""Keys and places in lists, from the outside to the inside: `("tasks", 1, "when")`."""

_HEADER: Final = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"""\s*(?P<quote>["']?)(?P<name>[\w.-]+)(?P=quote)\s*=""")
_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "goal": group_of,
    "when": condition_of,
    "effect": effects_of,
    "undo": group_of,
    "definition": condition_of,
}


def located(source: str, steps: Steps, what: str, exc: UserError, table: Any = None) -> BadDefinition:
    """Return the error that begins with `file:line:column`, of what is wrong or of what is nearest around it.

    Args:
        source: the file, or what else a domain was read from; empty for none.
        steps: where the value is in it.
        what: what it is, with a colon.
        exc: what came of reading it.
        table: the table, or the text, whose reading came to that.
    """
    message = str(exc)
    key, said = _text_with_error(table) if isinstance(exc, PlannerSyntaxError) else ("", "")
    place = _place(source, [*steps, key] if key else list(steps))
    if place is None:
        return BadDefinition(f"{source or 'the domain'}: {what}{message}")
    line, column, lines = place
    if said and isinstance(exc, PlannerSyntaxError):
        for written in (f'"{said}"', f"'{said}'", said):
            numbers = [number for number in range(line, len(lines) + 1) if written in lines[number - 1]]
            if numbers and exc.line == 1:
                line = numbers[0]
                column = lines[line - 1].index(written) + written.index(said) + exc.column
                message = message.partition(": ")[2]
                break
    return BadDefinition(f"{source}:{line}:{column}: {what}{message}")


def _place(source: str, steps: Steps) -> tuple[int, int, list[str]] | None:
    """Return line and column of a value, or of what is nearest around it, and the lines of its file."""
    file = Path(source)
    try:
        text = file.read_text(encoding="utf-8-sig") if source else ""
        found = (_in_toml if file.suffix.lower() == ".toml" else _in_yaml)(text, steps)
    except (OSError, ValueError):  # it was there when the domain was read
        return None
    return found and (*found, text.splitlines())


def _text_with_error(table: Any) -> tuple[str, str]:
    """Return key and text of the first value of a table that cannot be read."""
    if isinstance(table, str):
        return "", table
    for key, read in _READERS.items():
        text = getattr(table, key, None) or ""
        try:
            if text:
                read(text)
        except PlannerSyntaxError:
            return key, text
    for text in getattr(table, "subgoals", ()):
        try:
            group_of(text)
        except PlannerSyntaxError:
            return "subgoals", text
    return "", ""


def _in_toml(text: str, steps: Steps) -> tuple[int, int] | None:
    """Return line and column of a key, or of the header of its table; both from 1."""
    best: tuple[int, tuple[int, int]] | None = None
    at: list[str | int] = []
    counts: dict[str, int] = {}
    quoted = False
    for number, line in enumerate(text.splitlines(), start=1):
        inside, quoted = quoted, quoted ^ ((line.count('"""') + line.count("'''")) % 2 == 1)
        if inside:
            continue
        found: list[str | int] = []
        if header := _HEADER.match(line):
            names = [name.strip(" \"'") for name in header[1].split(".")]
            at = list(names)
            if line.lstrip().startswith("[["):
                counts[header[1]] = counts.get(header[1], -1) + 1
                at = [*names, counts[header[1]]]
            found = at
        elif key := _KEY.match(line):
            found = [*at, *key["name"].split(".")]
        depth = min(len(found), len(steps))
        if depth and found[:depth] == list(steps[:depth]) and (best is None or depth > best[0]):
            best = depth, (number, len(line) - len(line.lstrip()) + 1)
    return best and best[1]


def _in_yaml(text: str, steps: Steps) -> tuple[int, int] | None:
    """Return line and column of a value, or of the innermost one around it that is there; both from 1."""
    import yaml

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
        else:
            inner = None
        if inner is None:
            break
        node = inner
    return None if node is None else (node.start_mark.line + 1, node.start_mark.column + 1)
