"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        4.339,
        3.329,
        1.93,
        2.37,
        0.4539,
        4.083,
        -1.338,
        -0.9283,
        0.3286,
        1.039,
        -0.9223,
        -1.462,
        0.3745,
        -0.06762,
        -1.443,
        -0.4018,
        -0.9014,
        1.919,
        0.9613,
        -0.4053,
        2.451,
        1.848,
        2.12,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        1.872,
        3.124,
        0.5576,
        0.6923,
        -0.1539,
        -0.4186,
        0.3809,
        0.02906,
        -1.367,
        -0.003861,
        -0.4235,
        -1.008,
        -0.2023,
        -0.3902,
        -0.7169,
        -0.7448,
        -1.112,
        1.575,
        0.7752,
        -0.8445,
        0.6183,
        0.3199,
        1.595,
        -0.04871,
        3.208,
        -0.02856,
        0.3236,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -5.041
