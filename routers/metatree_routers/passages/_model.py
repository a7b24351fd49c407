"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.898,
        2.936,
        2.124,
        2.088,
        1.68,
        1.741,
        -0.9923,
        -0.8747,
        2.578,
        0.9998,
        -2.859,
        -0.1742,
        -1.033,
        1.502,
        -1.028,
        -0.7199,
        0.1406,
        -0.5354,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.534,
        1.537,
        0.5791,
        0.4864,
        1.224,
        1.533,
        0.202,
        0.07501,
        0.7804,
        0.7917,
        -0.1824,
        -1.436,
        -0.864,
        -0.4877,
        -0.5587,
        -0.5381,
        0.02347,
        -0.5112,
        -0.0223,
        2.274,
        -0.0009214,
        -0.2692,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.726
