"""Gates: the conditions of a production that have no variable, such as `(context state assign)`.

All tokens of the production come and go with them, and none differs by them. So they are left out of its join, and
the tokens of the rest are held back while the gate is shut: when it opens again, they are copied, not joined anew.

What is held is kept up to date while the gate is shut, as long as that costs no more than the join that it saves:
after as many changes as there were tokens, or with twice as many tokens, it is dropped. So the work is at most twice
that of the cheaper way, and a production whose gate stays shut costs a test for each change.

Source: keeping or dropping by what was spent is the "ski rental" argument (Karlin, Manasse, Rudolph, Sleator 1988).

Lost: joining anew each time. Miss Manners opens and shuts its gate for each guest and was half as fast as CLIPS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from metatree.rules.matcher.tokens import Agenda, Values

_LEAST: Final = 32
"""Changes that even few held tokens are kept for."""


class Gate:
    """The sink of a production's other conditions, and whether those without variables are met.

    Args:
        agenda: where tokens go while the gate is open.
        touched: an eager agenda whose tokens may have changed is put into it.
    """

    __slots__ = ("_limit", "_spent", "_touched", "_unmet", "agenda", "fill", "held", "opened", "warm")

    def __init__(self, agenda: Agenda, touched: dict[Agenda, None]) -> None:
        self.agenda = agenda
        self._touched = touched
        self.held: dict[Values, object] = {}
        """The tokens, while the gate is shut and they are kept up to date; in the order of their coming."""
        self.opened: list[bool] = []
        """Empty while the gate is shut: functions that are written once look into it."""
        self.warm: list[bool] = []
        """Empty while tokens are not kept up to date."""
        self.fill: Callable[[int], None] = lambda event: None
        """Joins all other conditions, with the tokens as result."""
        self._unmet = 0
        self._spent = 0
        self._limit = 0

    def begin(self, unmet: int) -> None:
        """Say how many conditions are not met, before anything else happens."""
        self._unmet = unmet
        if not unmet:
            self.opened.append(True)
            self.warm.append(True)

    def met(self, event: int) -> None:
        """Take in that one more condition is met."""
        self._unmet -= 1
        if self._unmet:
            return
        agenda, held = self.agenda, self.held
        self.opened.append(True)
        if self.warm:
            agenda.to_add.update(dict.fromkeys(held, event))
            held.clear()
        else:
            self.warm.append(True)
            self.fill(event)
        if agenda.eager and agenda.to_add:
            self._touched[agenda] = None

    def unmet(self, event: int) -> None:
        """Take in that one condition is met no more."""
        self._unmet += 1
        if self._unmet != 1:
            return
        agenda, held = self.agenda, self.held
        self.opened.clear()
        held.update(agenda.to_add)
        agenda.to_add.clear()
        for values in list(agenda.committed):
            held[values] = None
            agenda.withdraw(values, event)
        self._spent, self._limit = 0, len(held) + _LEAST
        if agenda.eager and agenda.to_remove:
            self._touched[agenda] = None

    def spend(self) -> bool:
        """Count a change while the gate is shut; False when it is not worth its while any more."""
        self._spent += 1
        if self._spent <= self._limit and len(self.held) <= 2 * self._limit:
            return True
        self.warm.clear()
        self.held.clear()
        return False
