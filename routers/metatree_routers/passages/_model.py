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
        2.538,
        1.536,
        0.5804,
        0.4859,
        1.224,
        1.528,
        0.2016,
        0.07603,
        0.7769,
        0.7914,
        -0.1794,
        -1.437,
        -0.8646,
        -0.491,
        -0.5588,
        -0.5387,
        0.02683,
        -0.5082,
        -0.02237,
        2.276,
        -0.001862,
        -0.2695,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.723
