"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.897,
        2.936,
        2.108,
        2.542,
        1.678,
        1.751,
        -0.9998,
        -0.8026,
        2.695,
        1.03,
        -2.897,
        -0.1723,
        -1.033,
        1.471,
        -1.03,
        -0.7413,
        0.08557,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        1.79,
        2.501,
        0.8246,
        0.7083,
        1.255,
        1.005,
        0.3057,
        -0.03176,
        0.5679,
        0.9656,
        -0.7185,
        -0.7373,
        -1.186,
        -0.1247,
        -0.4138,
        -1.028,
        0.2684,
        -0.1071,
        1.712,
        0.3846,
        0.0009638,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.824
