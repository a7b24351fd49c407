"""YAML of files that strangers made, read within bounds.

Eight lines of `<<: [*a, *a, …]`, or of `[*a, *a, …]`, stand for a hundred million pairs or texts, and `1:1:1:…`, a
number to the base of 60, takes the square of its length.
"""

from __future__ import annotations

from typing import Any, Final

MOST_MERGED: Final = 100_000
"""Pairs that all merge keys of a text may bring."""
MOST_NODES: Final = 1_000_000
MOST_SIGNS: Final = 200
"""Of a number."""


def load_yaml(text: str, *, dates: bool = True, most_values: float = float("inf")) -> Any:
    """Return the value of a text, by the safe loader of PyYAML; dates as texts unless `dates`.

    Args:
        most_values: how many values it may have, for whoever writes all of them out; those that aliases repeat count
            each time.

    Raises:
        ImportError: PyYAML is not installed.
        yaml.YAMLError: it is no YAML, or its merge keys or aliases bring too much, or a number is too long.
        RecursionError, ValueError, TypeError: it is nested too deep, or has a key that no mapping can have.
    """
    import yaml

    fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(fast):  # type: ignore[misc]
        """Counts what it merges."""

        merged = 0

        def flatten_mapping(self, node: Any) -> None:
            before = len(node.value)
            super().flatten_mapping(node)
            self.merged += max(0, len(node.value) - before)
            if self.merged > MOST_MERGED:
                raise yaml.constructor.ConstructorError(
                    None, None, f"merge keys bring more than {MOST_MERGED:,} pairs", node.start_mark
                )

    def read_value(name: str) -> None:
        tag = f"tag:yaml.org,2002:{name}"
        construct = fast.yaml_constructors[tag]

        def value(loader: Any, node: Any) -> Any:
            if name in ("int", "float") and len(node.value) > MOST_SIGNS:
                raise yaml.constructor.ConstructorError(
                    None, None, f"a number has more than {MOST_SIGNS} signs", node.start_mark
                )
            try:
                return construct(loader, node)
            except (ValueError, LookupError, AttributeError, OverflowError):  # it quotes the value in parts
                raise yaml.constructor.ConstructorError(
                    None, None, f"what is tagged as {name} is none", node.start_mark
                ) from None

        Loader.add_constructor(tag, value)

    for name in ("int", "float", "bool", "timestamp", "binary"):
        read_value(name)
    if not dates:
        Loader.yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in fast.yaml_implicit_resolvers.items()
        }
    _refuse_many(text, fast)
    value = yaml.load(text, Loader=Loader)
    if most_values < float("inf") and _count(value, {}) > most_values:
        raise yaml.constructor.ConstructorError(
            None, None, f"aliases bring more than {most_values:,} values", None
        )
    return value


def _refuse_many(text: str, loader: Any) -> None:
    """Refuse a text of more than `MOST_NODES`, each of which takes some 400 bytes while it is read.

    A mapping or list takes twice as much, and so counts as two.
    """
    import yaml

    if len(text) > MOST_NODES:  # none has fewer characters than nodes
        nodes = sum(not isinstance(event, yaml.StreamEndEvent) for event in yaml.parse(text, Loader=loader))
        if nodes > MOST_NODES:
            raise yaml.constructor.ConstructorError(
                None, None, f"it has more than {MOST_NODES:,} values", None
            )


def _count(value: Any, counts: dict[int, float]) -> float:
    """Return how many values there are in one, infinity where it is in itself."""
    if not isinstance(value, dict | list | tuple | set):
        return 1
    if id(value) not in counts:
        counts[id(value)] = float("inf")  # while it is counted
        below = [*value, *value.values()] if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_count(each, counts) for each in below)
    return counts[id(value)]
