"""How often properties are tried: seldom while developing, more where it counts.

`quick` is the profile that hypothesis takes by hand and with `make test`; `ci` the one of continuous integration (`CI`,
`.ci/run`), whose examples are others in each run; `full` is for a change of what properties are about. `METATREE_TESTS`
or `--hypothesis-profile` names one, such as `quick` where what was tried is run again with other versions. There are no
deadlines: how long an example takes says how busy the machine is, and nothing of the code.
"""

from __future__ import annotations

import os

from hypothesis import settings

_FULL = 100
_CI = 20
_QUICK = 15


def load_profile() -> None:
    """Register the profiles and load the one that the environment asks for."""
    settings.register_profile("full", max_examples=_FULL, deadline=None)
    settings.register_profile("ci", max_examples=_CI, deadline=None)
    settings.register_profile("quick", max_examples=_QUICK, deadline=None)
    settings.load_profile(os.environ.get("METATREE_TESTS") or ("ci" if os.environ.get("CI") else "quick"))


def examples(full: int) -> int:
    """Return how many examples the profile in use makes of those that a property has in full."""
    return max(3, full * settings().max_examples // _FULL)
