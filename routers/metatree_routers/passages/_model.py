"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.437,
        2.722,
        1.766,
        2.264,
        0.3954,
        4.45,
        -1.305,
        -0.7433,
        0.3581,
        1.09,
        -0.5638,
        -1.565,
        0.3988,
        -0.4378,
        -1.373,
        -1.094,
        -0.8604,
        1.614,
        0.6339,
        -0.3553,
        1.787,
        1.506,
        2.14,
        1.598,
        1.434,
        1.899,
        -0.3616,
        3.733,
        1.097,
        1.045,
        -1.247,
        -1.36,
        -3.386,
        -2.131,
        -2.26,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.912,
        0.5204,
        -0.00203,
        0.09999,
        -1.81,
        0.5652,
        -0.9567,
        -0.3047,
        -1.795,
        2.269,
        0.6207,
        -0.2834,
        -0.4264,
        0.5742,
        1.007,
        1.189,
        0.2865,
        0.4896,
        -0.1134,
        1.292,
        0.2927,
        0.9805,
        -2.62,
        -3.013,
        -2.405,
        -1.345,
        -0.776,
        1.823,
        -0.3024,
        0.9625,
        1.763,
        1.666,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than any other."""
BIAS: Final = -6.932
