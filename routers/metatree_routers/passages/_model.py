"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.775,
        2.618,
        2.047,
        2.062,
        1.708,
        1.72,
        -0.989,
        -1.121,
        2.774,
        1.153,
        -2.622,
        -0.0845,
        -1.069,
        1.45,
        -0.9603,
        -0.7902,
        0.3321,
        -0.582,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        1.833,
        2.262,
        0.4444,
        0.1326,
        1.147,
        0.5782,
        0.7349,
        0.09016,
        0.5698,
        0.6149,
        -0.11,
        -1.11,
        -1.468,
        -0.3632,
        -0.6199,
        -0.8922,
        0.6268,
        -0.9885,
        -0.07286,
        2.495,
        0.06872,
        -0.05241,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.418
