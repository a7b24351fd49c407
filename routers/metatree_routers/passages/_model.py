"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.3,
        1.794,
        1.849,
        2.35,
        0.5901,
        4.856,
        -1.068,
        -0.8899,
        2.345,
        0.821,
        -1.356,
        -1.096,
        0.41,
        -1.304,
        -0.9709,
        0.534,
        -0.7571,
        1.687,
        1.393,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.49,
        2.931,
        -0.302,
        0.3568,
        0.6073,
        -0.4368,
        0.6484,
        0.04472,
        0.5887,
        0.5894,
        -0.4325,
        -1.349,
        -0.08963,
        -0.3795,
        -0.8594,
        -0.4685,
        -1.135,
        1.376,
        0.7186,
        -0.09202,
        1.97,
        0.4779,
        -0.1212,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -3.62
