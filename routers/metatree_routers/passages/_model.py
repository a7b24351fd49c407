"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.535,
        2.771,
        1.952,
        2.582,
        1.89,
        1.709,
        -0.9736,
        -0.7665,
        2.795,
        0.833,
        -3.098,
        -0.589,
        -1.024,
        1.72,
        -1.1,
        -0.753,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.407,
        1.86,
        0.4435,
        0.1117,
        0.2697,
        0.368,
        0.08072,
        0.1599,
        -0.4882,
        0.7233,
        0.3387,
        -0.2439,
        -0.6724,
        0.3362,
        -0.6916,
        -0.5394,
        0.04951,
        2.05,
        0.2855,
        0.473,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -6.364
