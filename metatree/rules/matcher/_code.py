"""Functions that are written out: as text until they are first called, and several as one.

A call of a function that does next to nothing costs as much as what it does, so what happens to a fact is one function
where it can be: what three handlers do, and the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

CHANGE: Final = "f0, f1, f2, event"
"""The arguments of what is called when a fact comes or goes: its values, and the number of the event."""
_FEW: Final = 4
"""Functions that are written as one. With more, each new one would have all others compiled again."""
_numbers = count()


def fresh() -> str:
    """Return a name that no other written function uses."""
    return f"c{next(_numbers)}"


@dataclass(slots=True, eq=False)
class Code:
    """A function that is written, and compiled when it is first asked for: what it looks up exists, and most never run.

    Names are those of `fresh`, or mean the same everywhere, so that bodies can stand one after the other.
    """

    arguments: str
    body: str
    """Lines that begin with a space, without a return."""
    names: Mapping[str, Any]
    indexes: frozenset[Any] = frozenset()
    """The indexes that it uses: memories and places."""
    parts: str = ""
    """Functions that it calls."""
    _function: Callable[..., None] | None = field(default=None, init=False)

    def compiled(self) -> Callable[..., None]:
        """Return the function."""
        if self._function is None:
            names = dict(self.names)
            source = f"{self.parts}\ndef run({self.arguments}):\n{self.body}\n"
            exec(compile(source, "<rule>", "exec"), names)
            self._function = names["run"]
        return self._function

    def put_lazily(self, put: Callable[[Callable[..., None]], object]) -> None:
        """Put a function in a place that is replaced by the compiled one when it is first called."""

        def first(*arguments: Any) -> None:
            put(self.compiled())
            self.compiled()(*arguments)

        put(first)


def together(codes: Sequence[Code]) -> Code:
    """Return one function that does what several do when a fact comes or goes, one after the other."""
    if len(codes) == 1:
        return codes[0]
    if len(codes) > _FEW:
        functions = fresh()
        each = f" for do in {functions}: do({CHANGE})"
        return Code(CHANGE, each, {functions: [code.compiled() for code in codes]})
    return Code(
        CHANGE,
        "\n".join(code.body for code in codes) or " pass",
        {name: value for code in codes for name, value in code.names.items()},
        parts="\n".join(code.parts for code in codes),
    )
