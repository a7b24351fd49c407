"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.888,
        3.006,
        2.12,
        2.564,
        1.933,
        1.713,
        -0.9994,
        -0.8078,
        2.693,
        1.025,
        -2.904,
        -0.29,
        -1.032,
        1.465,
        -1.059,
        -0.7906,
        0.05022,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.127,
        1.963,
        0.6534,
        0.6073,
        1.139,
        0.6155,
        0.541,
        -0.03839,
        0.3858,
        0.8109,
        -0.3326,
        -0.9401,
        -1.261,
        -0.2605,
        -0.3633,
        -1.084,
        0.02672,
        -0.04906,
        1.892,
        0.2024,
        -0.1305,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.183
