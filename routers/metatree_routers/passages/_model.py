"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.05,
        3.446,
        1.757,
        1.373,
        2.06,
        -0.5776,
        -0.48,
        1.912,
        0.3865,
        0.2387,
        -0.8492,
        0.6127,
        -0.3585,
        -0.7282,
        0.3008,
        -0.6866,
        0.6814,
        0.9768,
        0.3712,
        0.4833,
        1.078,
        1.527,
        0.5426,
        1.745,
        -0.2297,
        0.6485,
        0.09155,
        1.533,
        0.9196,
        -1.376,
        -1.898,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.121,
        0.05796,
        0.09772,
        -0.3737,
        -1.708,
        0.262,
        -1.211,
        -0.5758,
        -1.3,
        0.9348,
        0.4502,
        -0.7521,
        -0.5354,
        1.395,
        0.9085,
        0.219,
        0.5272,
        -0.1192,
        0.6626,
        0.3987,
        0.7034,
        1.276,
        -2.823,
        -1.387,
        2.039,
        -0.3682,
        0.5979,
        1.922,
        0.2197,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than others, against their spread."""
BIAS: Final = -5.314
