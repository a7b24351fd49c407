"""How often properties are tried: seldom while developing, in full where it counts.

`quick` is the profile that hypothesis takes by hand and with `make test`; `full` the one of continuous integration
(`CI=1`, `.ci/run`) and of `METATREE_TESTS=full`; `--hypothesis-profile NAME` names either. There are no deadlines: how
long an example takes says how busy the machine is, and nothing of the code.
"""

from __future__ import annotations

import os

from hypothesis import settings

_FULL = 100
_QUICK = 15


def load_profile() -> None:
    """Register both profiles and load the one that the environment asks for."""
    settings.register_profile("full", max_examples=_FULL, deadline=None)
    settings.register_profile("quick", max_examples=_QUICK, deadline=None)
    full = os.environ.get("CI") or os.environ.get("METATREE_TESTS") == "full"
    settings.load_profile("full" if full else "quick")


def examples(full: int) -> int:
    """Return how many examples the profile in use makes of those that a property has in full."""
    return max(3, full * settings().max_examples // _FULL)
