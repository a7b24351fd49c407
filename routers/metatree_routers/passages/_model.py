"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        2.993,
        1.729,
        2.136,
        2.22,
        0.5309,
        4.727,
        -1.078,
        -0.8462,
        2.27,
        0.7711,
        -1.236,
        -1.108,
        0.5183,
        -1.268,
        -0.9201,
        0.3249,
        -0.715,
        1.974,
        1.38,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        1.6,
        3.565,
        -0.008691,
        0.2655,
        0.3691,
        -0.6024,
        0.402,
        0.01778,
        0.2063,
        0.5117,
        0.2322,
        -1.312,
        0.1191,
        -0.2743,
        -0.622,
        -1.008,
        -1.213,
        1.242,
        0.6088,
        -0.03878,
        2.199,
        0.1198,
        0.08583,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.523
