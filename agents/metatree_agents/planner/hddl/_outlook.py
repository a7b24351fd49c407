"""What the tasks that remain can still bring about.

A fact that the end needs and that no remaining task can bring about has to hold already; where it does not, or a step
undoes it, a search turns back at once and not at the end. Lost: turning back, besides, to a choice that can have to do
with what went wrong (Prosser 1993): nearly all of them can, as far as the domain tells.

Source: Hoffmann, Porteous, Sebastia 2004 (ordered landmarks), with the tasks of the network as their achievers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from metatree_agents.planner.hddl._pullup import Pattern

Fact = tuple[int, tuple[int, ...]]
"""A changing relation, by its number, and its arguments."""
Want = tuple[bool, int, tuple[int, ...]]
"""Whether it is to hold, and a fact."""
_Pattern = tuple["int | frozenset[int]", ...]
"""For each argument a task's parameter, -1 minus an object, or any of a set."""
_Guard = tuple[tuple[int, frozenset[int]], ...]
"""Parameters of the task, and what they must be among."""


class Outlook:
    """Answers for one problem.

    Args:
        changes: what each task may change, as `PullUp` has learnt it.
        task, number, fluent: the numbers of tasks, objects and changing relations.
    """

    def __init__(
        self,
        changes: Mapping[str, Iterable[Pattern]],
        task: Mapping[str, int],
        number: Mapping[str, int],
        fluent: Mapping[str, int],
    ) -> None:
        self._brings: dict[int, dict[tuple[bool, int], list[tuple[_Pattern, _Guard]]]] = {}
        for name, patterns in changes.items():
            known = self._brings.setdefault(task[name], {})
            for adds, relation, arguments, guard in patterns:
                pattern = tuple(
                    arg
                    if isinstance(arg, int)
                    else -1 - number[arg]
                    if isinstance(arg, str)
                    else frozenset(number[one] for one in arg)
                    for arg in arguments
                )
                when = tuple(
                    (n, frozenset(number[one] for one in only if one in number)) for n, only in guard
                )
                known.setdefault((adds, fluent[relation]), []).append((pattern, when))

    def brings(self, task: int, arguments: tuple[int, ...], want: Want) -> bool:
        """Say whether a task may bring about what is wanted."""
        sign, place, wanted = want
        for pattern, guard in self._brings[task].get((sign, place), ()):
            if guard and not _met(guard, arguments):
                continue
            for one, value in zip(pattern, wanted, strict=True):
                if isinstance(one, frozenset):
                    if value not in one:
                        break
                elif (arguments[one] if one >= 0 else -1 - one) != value:
                    break
            else:
                return True
        return False

    def forgone(self, wanted: Iterable[Want], task: int, subtasks: Iterable[int]) -> list[Want]:
        """Return what a task may bring about, with some arguments, and these subtasks perhaps not."""
        kept = {
            key
            for one in subtasks
            for key, patterns in self._brings[one].items()
            if any(not guard for _, guard in patterns)
        }
        return [want for want in wanted if want[:2] in self._brings[task] and want[:2] not in kept]

    def last(self, wanted: Iterable[Want], tasks: Sequence[tuple[int, tuple[int, ...]]]) -> dict[Fact, int]:
        """Return, for each fact that is wanted at the end, the place of the last task that may bring it; -1: none."""
        exact: dict[Want, int] = {}
        vague: dict[tuple[bool, int], list[int]] = {}
        for index, (task, arguments) in enumerate(tasks):
            for (sign, place), patterns in self._brings[task].items():
                for pattern, guard in patterns:
                    if guard and not _met(guard, arguments):
                        continue
                    if any(isinstance(one, frozenset) for one in pattern):
                        listed = vague.setdefault((sign, place), [])
                        if not listed or listed[-1] != index:
                            listed.append(index)
                    else:
                        values = tuple(arguments[one] if one >= 0 else -1 - one for one in pattern)  # type: ignore[index,operator]
                        exact[sign, place, values] = index
        found = {}
        for want in wanted:
            latest = exact.get(want, -1)
            for index in reversed(vague.get(want[:2], ())):
                if index <= latest:
                    break
                if self.brings(*tasks[index], want):
                    latest = index
                    break
            found[want[1], want[2]] = latest
        return found


def _met(guard: _Guard, arguments: tuple[int, ...]) -> bool:
    return all(arguments[number] in allowed for number, allowed in guard)
