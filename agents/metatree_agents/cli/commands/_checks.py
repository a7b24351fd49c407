"""Checks of commands that look whether all is there: each says one thing, whatever happens to the others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from metatree._util.secret_text import shapes_masked
from metatree.errors import MetatreeError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import denied

SMALL_DISK = 200_000_000


class Check(NamedTuple):
    """What was looked at, and what was found."""

    name: str
    ok: bool
    detail: str


class Bad(Exception):
    """A check found something wrong; the message says what and what to do."""


def checked(name: str, check: Callable[[], str]) -> Check:
    """Return what a check says, without keys that a file out of form has where a name should be."""
    ok = False
    try:
        detail, ok = check(), True
    except (Bad, MetatreeError) as bad:
        detail = str(bad)
    except PermissionError as error:
        detail = denied(error)
    except Exception as error:  # whatever is broken, the other checks are still of use
        detail = f"{type(error).__name__}: {error}"
    return Check(name, ok, shapes_masked(detail))


def line(check: Check) -> str:
    """Return a check as people read it."""
    mark = output.styled("ok  ", "green") if check.ok else output.styled("FAIL", "red", "bold")
    return f"{mark}  {check.name:15}  {output.visible(check.detail)}"


def disk(place: Path) -> str:
    """Say how much room there is.

    Raises:
        Bad: there is little.
    """
    free = shutil.disk_usage(nearest_folder(place)).free
    if free < SMALL_DISK:
        raise Bad(f"only {free / 1e6:,.0f} MB free where the tree lives: make room, or use --tree elsewhere")
    return f"{free / 1e9:,.1f} GB free"


def nearest_folder(place: Path) -> Path:
    return next(folder for folder in (place, *place.resolve().parents) if folder.is_dir())
