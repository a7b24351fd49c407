"""YAML whose merge keys stay few: eight lines of `<<: [*a, *a, …]` stand for a hundred million pairs."""

from __future__ import annotations

from typing import Any, Final

MOST_MERGED: Final = 100_000
"""Pairs that all merge keys of a text may bring."""


def load_yaml(text: str, *, dates: bool = True) -> Any:
    """Return the value of a text, by the safe loader of PyYAML; dates as texts unless `dates`.

    Raises:
        ImportError: PyYAML is not installed.
        yaml.YAMLError: it is no YAML, or its merge keys bring too much.
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

    if not dates:
        Loader.yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in fast.yaml_implicit_resolvers.items()
        }
    return yaml.load(text, Loader=Loader)
