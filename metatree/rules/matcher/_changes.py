"""What is done when a fact comes or goes: one function each, written for the kinds of memories that there are.

A call of a Python function costs as much as two look-ups, so there is none between the working memory, the network and
the way to a memory: `retract` is all of it, from the checks of its arguments on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final

from metatree.rules.matcher._alpha import Alpha, Places, Shape, places_text

Mask = tuple[Places, tuple[tuple[int, int], ...]]
"""Where a memory has constants, and which places hold equal values."""

_CHANGES: Final = """
def add(f0, f1, f2):
    event = network.event + 1
    if facts.setdefault((f0, f1, f2), event) != event:  # those that are there came before: one look-up is enough
        return False
    network.event = event
    FOUND
    if others is not None:
        for alpha in others:
            alpha.insert(f0, f1, f2, event)
        for alpha in others:
            alpha.find(f0, f1, f2, event)
    elif found is not None:
        do = found.add  # a function that is an attribute is called faster by a name of its own
        do(f0, f1, f2, event)
    if dirty:
        settle(event)
    if len(facts) >= network.replan_at:
        replan()
    return True

def remove(f0, f1, f2):
    since = pop((f0, f1, f2), 0)
    if not since:
        return 0
    TAKE_OUT
    return since

def retract(subject, attribute, value):
    if special:
        if support or provenance or watchers:
            return retract_any(subject, attribute, value)
        if type(subject) is not str:
            subject = check(subject)
        if type(attribute) is not str:
            attribute = check(attribute)
        if type(value) is not str:
            value = check(value)
    try:
        since = pop((subject, attribute, value), None)
    except TypeError:  # a list, which may be a fact
        return retract_any(subject, attribute, value)
    if since is None:  # not there, or given as what becomes a text: `true`, a member of an enumeration
        return retract_any(subject, attribute, value)
    TAKE_OUT
    if special and (touched or failures):
        follow((subject, attribute, value), since)
    return True
"""
_TAKE_OUT: Final = """
    network.event = event = network.event + 1
    FOUND
    if found is not None:
        if others is None and not looking:
            do = found.remove
            do(f0, f1, f2, event)
        else:
            if looking:
                facts[f0, f1, f2] = since
            for alpha in others or (found,):
                alpha.lose(f0, f1, f2, event)
            for alpha in others or (found,):
                alpha.delete(f0, f1, f2, event)
            if looking:
                del facts[f0, f1, f2]
        if dirty:
            settle(event)
"""
"""FOUND sets `found` to a memory that the fact belongs to, and `others` to all of them when there are several."""
_VALUES: Final = {"f0": "subject", "f1": "attribute", "f2": "value"}


class Changes:
    """The memories that facts belong to, and the functions that are written for them: `add`, `remove` and `retract`.

    Each stays the same object: who holds one goes on with what is written later.

    Args:
        names: what they use: `network`, `facts`, `pop` of the facts, `dirty`, `looking`, `touched`, `settle`, `replan`.
    """

    def __init__(self, **names: Any) -> None:
        self._names = names
        self._tables: dict[Mask, dict[Any, Any]] = {}
        """Where constants are -> the first of them -> the others -> the memory; one level less for one constant."""
        self._functions: dict[str, FunctionType] = {}
        self._write()
        self.add: Callable[[Any, Any, Any], bool] = self._functions["add"]
        """Asserts a fact; False when it is there already."""
        self.remove: Callable[[Any, Any, Any], int] = self._functions["remove"]
        """Retracts a fact and returns the event it came with; 0 when it is not there."""

    def retract(self, **names: Any) -> Callable[[Any, Any, Any], bool]:
        """Return the function that does all that a working memory does to retract a fact.

        Args:
            names: what else it uses: `special`, in which nothing is while facts are of texts alone, nobody but the
                caller knows of them, and nothing can follow from them; `check` of a value otherwise; `support`,
                `provenance` and `watchers`, in which nothing is while it does all by itself; `retract_any`, which does
                it in any case; `failures` of functions, and `follow`, which is called with the fact and its event when
                something follows.
        """
        self._names |= names
        return self._functions["retract"]

    def put(self, alpha: Alpha) -> None:
        """Look for a memory from now on."""
        known, (*outer, last) = len(self._tables), _path(alpha.shape)
        table = self._tables.setdefault(_mask(alpha.shape), {})
        for constant in outer:
            table = table.setdefault(constant, {})
        table[last] = alpha
        if len(self._tables) != known:
            self._write()

    def drop(self, alpha: Alpha) -> None:
        """Look for a memory no more."""
        mask, (head, *rest) = _mask(alpha.shape), _path(alpha.shape)
        table = self._tables[mask]
        if rest:
            del table[head][rest[0]]
        if not rest or not table[head]:
            del table[head]
        if not table:
            del self._tables[mask]
            self._write()

    def _write(self) -> None:
        """Write the functions, with a look-up in them for each mask of constants that memories have."""
        lines = ["found = others = None"]
        for number, (mask, table) in enumerate(self._tables.items()):
            lines += self._look_up(mask, table, f"t{number}", first=not number)
        found = "\n".join(f"    {line}" for line in lines).strip()
        take_out = _TAKE_OUT.strip().replace("FOUND", found)
        named = re.sub(r"\bf[012]\b", lambda match: _VALUES[match[0]], take_out)
        before, retract = _CHANGES.replace("FOUND", found).split("def retract")
        source = before.replace("TAKE_OUT", take_out) + "def retract" + retract.replace("TAKE_OUT", named)
        written: dict[str, FunctionType] = {}
        exec(_compiled(source), self._names, written)
        for name, function in written.items():
            # A copy: what the interpreter learns of one memory in running it would be wrong for the next.
            self._functions.setdefault(name, function).__code__ = function.__code__.replace()

    def _look_up(self, mask: Mask, table: dict[Any, Any], name: str, *, first: bool) -> list[str]:
        (places, equal), self._names[name] = mask, table
        tests = [f"f{p} == f{q}" for p, q in equal] + [f"f{p} in {name}" for p in places[:1]]
        lines = [f"if {' and '.join(tests) or 'True'}:"]
        more, margin = f"{name}[{places_text(places[:1])}]", "    "
        if len(places) > 1:
            more += f".get({places_text(places[1:])})"
        if first:
            return [*lines, f"    found = {more}"]
        if len(places) > 1:
            lines += [f"    more = {more}", "    if more is not None:"]
            more, margin = "more", "        "
        return [
            *lines,
            f"{margin}if found is None: found = {more}",
            f"{margin}else: others = (found, {more}) if others is None else (*others, {more})",
        ]


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    """Return the code of a text; a query with a kind of memory of its own comes back to those of before and after."""
    return compile(source, "<changes>", "exec")


def _mask(shape: Shape) -> Mask:
    return shape.mask, tuple(shape.equal)


def _path(shape: Shape) -> tuple[Any, ...]:
    """Return the keys that lead to a memory: most facts have not even the first constant, and need no tuple."""
    first, *rest = shape.constants.values() or ((),)
    return (first, rest[0] if len(rest) == 1 else tuple(rest)) if rest else (first,)
