"""The sets by name; a new one is a function that reads it, and is named here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.answers.dataset import QuestionSet
from benchmarks.answers.own import own
from benchmarks.answers.shared import beam, financebench, locomo, qasper

OWN: Mapping[str, Callable[[Path], QuestionSet]] = {
    "own-a": partial(own, "a"),
    "own-b": partial(own, "b"),
}
"""Read from this folder and a work folder that its sources are fetched into."""
SHARED: Mapping[str, Callable[[Path], QuestionSet]] = {
    "locomo": locomo,
    "beam": beam,
    "qasper": qasper,
    "financebench": financebench,
}
"""Read from a folder of data."""
SETS = (*OWN, *SHARED)


def load(name: str, data: Path | None, work: Path) -> QuestionSet:
    """Read a set.

    Raises:
        FileNotFoundError: the data is not there.
    """
    if name in OWN:
        return OWN[name](work)
    if data is None:
        raise FileNotFoundError(f"{name} is read from a folder of data: name it with --data")
    return SHARED[name](data)
