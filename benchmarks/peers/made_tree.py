"""A made tree of headed notes: branching 10, every leaf holds one fact that no other leaf holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

BRANCHING = 10
Code = tuple[int, ...]
"""The number of a heading: (3, 4, 7) is written 3.4.7; () is the root."""


def _words(text: str) -> list[str]:
    return text.split()


_AREAS = _words("billing shipping identity search messaging storage reporting scheduling payments support")
_PARTS = _words("gateway worker cache queue importer exporter dashboard archive monitor registry")
_ASPECTS = _words(
    "retries timeouts quotas retention encryption batching throttling failover logging validation"
)
_PLACES = _words("Lisbon Oslo Quito Nairobi Osaka Perth Austin Cairo Tallinn Mumbai")
_CLIENTS = _words("retailers hospitals schools banks carriers museums insurers publishers airlines utilities")
_SEASONS = _words("January February March April May June July August September October")
_JOINERS = (
    (_AREAS, "{}"),
    (_PARTS, "the {} of {}"),
    (_ASPECTS, "{} in {}"),
    (_PLACES, "{1} at {0}"),
    (_CLIENTS, "{1} for {0}"),
    (_SEASONS, "{1} in {0}"),
)


def written(code: Code) -> str:
    """Return a code as a heading number.

    Example:
        >>> written((3, 10, 7))
        '3.10.7'
    """
    return ".".join(map(str, code))


@dataclass(frozen=True)
class MadeTree:
    """A tree of `BRANCHING ** depth` leaves; its nodes are computed, not kept."""

    depth: int

    @property
    def leaves(self) -> int:
        return int(BRANCHING**self.depth)

    def leaf(self, index: int) -> Code:
        """Return the code of a leaf by its position, from 0."""
        digits = []
        for _ in range(self.depth):
            index, digit = divmod(index, BRANCHING)
            digits.append(digit + 1)
        return tuple(reversed(digits))

    def position(self, leaf: Code) -> int:
        """Return the position of a leaf."""
        position = 0
        for digit in leaf:
            position = position * BRANCHING + digit - 1
        return position

    def children(self, code: Code) -> list[Code]:
        return [] if len(code) == self.depth else [(*code, digit) for digit in range(1, BRANCHING + 1)]

    def walk(self) -> Iterator[Code]:
        """Yield all codes below the root, parents first, in the order of a document."""
        stack = self.children(())[::-1]
        while stack:
            code = stack.pop()
            yield code
            stack += self.children(code)[::-1]

    def phrase(self, code: Code) -> str:
        """Return what a node is about: `throttling in the queue of shipping`."""
        text = ""
        for digit, (words, joiner) in zip(code, _JOINERS, strict=False):
            text = joiner.format(words[digit - 1], text)
        return text

    def title(self, code: Code) -> str:
        phrase = self.phrase(code)
        return f"{written(code)} {phrase[0].upper()}{phrase[1:]}"

    def description(self, code: Code) -> str:
        """Return one sentence; an inner node names what its children are about."""
        if len(code) == self.depth:
            return f"The limit for {self.phrase(code)}, who sets it and how it is changed."
        words = _JOINERS[len(code)][0]
        return f"Everything on {self.phrase(code)}: {', '.join(words)}."

    def content(self, leaf: Code) -> str:
        """Return the text of a leaf, about 100 tokens, with its fact in the first sentence."""
        phrase = self.phrase(leaf)
        return (
            f"The limit for {phrase} is {self.fact(leaf)} units an hour. It is set by the team that runs "
            f"{self.phrase(leaf[:-1])} and reviewed with the owners of {self.phrase(leaf[:1])} every quarter. "
            "To change it, open a request that names the reason, the expected load and a date to look at it again; "
            "two of the owners have to agree. A change takes effect with the next release, is announced a week "
            "before, and can be taken back within a day if the load does not develop as it was expected to."
        )

    def fact(self, leaf: Code) -> str:
        """Return the seven digits that only this leaf holds."""
        return str(1_000_000 + self.position(leaf) * 7_919_317 % 9_000_000)

    def question(self, leaf: Code) -> str:
        return f"What is the limit for {self.phrase(leaf)}?"
