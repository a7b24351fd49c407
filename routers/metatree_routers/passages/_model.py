"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.039,
        3.439,
        1.761,
        1.373,
        2.064,
        -0.5775,
        -0.4807,
        1.912,
        0.3867,
        0.2417,
        -0.8492,
        0.6122,
        -0.3572,
        -0.7252,
        0.3033,
        -0.6867,
        0.6833,
        0.9784,
        0.357,
        0.481,
        1.074,
        1.525,
        0.5423,
        1.749,
        -0.229,
        0.6477,
        0.09188,
        1.533,
        0.9207,
        -1.362,
        -1.894,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.108,
        0.05683,
        0.1194,
        -0.3738,
        -1.672,
        0.2653,
        -1.209,
        -0.5787,
        -1.299,
        0.9307,
        0.4489,
        -0.7396,
        -0.5176,
        1.357,
        0.9113,
        0.2197,
        0.534,
        -0.1247,
        0.6631,
        0.4011,
        0.7056,
        1.259,
        -2.823,
        -1.383,
        2.042,
        -0.3792,
        0.5976,
        1.941,
        0.217,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than others, against their spread."""
BIAS: Final = -5.314
