"""The sets by name; a new one is a function that reads it, and is named here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.answers.dataset import QuestionSet
from benchmarks.answers.own import own
from benchmarks.answers.shared import beam, financebench, locomo, qasper

OWN: Mapping[str, Callable[[Path], QuestionSet]] = {f"own-{name}": partial(own, name) for name in "abcdeg"}
"""Read from a work folder that their sources are fetched into; the model is fitted on them."""
HELD: Mapping[str, Callable[[Path], QuestionSet]] = {f"own-{name}": partial(own, name) for name in "fhi"}
"""Read like those; nothing is fitted on them, and nothing is tuned on `own-f` and `own-h`. `own-i` was written by one
who had read the code that answers: no figure of it counts as held out, and fitted on, it brings nothing."""
SHARED: Mapping[str, Callable[[Path], QuestionSet]] = {
    "locomo": locomo,
    "beam": beam,
    "qasper": qasper,
    "financebench": financebench,
}
"""Read from a folder of data."""
SETS = (*OWN, *HELD, *SHARED)


def load(name: str, data: Path | None, work: Path) -> QuestionSet:
    """Read a set.

    Raises:
        FileNotFoundError: the data is not there.
    """
    if read := OWN.get(name) or HELD.get(name):
        return read(work)
    if data is None:
        raise FileNotFoundError(f"{name} is read from a folder of data: name it with --data")
    return SHARED[name](data)
