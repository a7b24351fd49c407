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
        0.3288,
        1.039,
        -0.9224,
        -1.462,
        0.3745,
        -0.06763,
        -1.443,
        -0.4019,
        -0.9014,
        1.919,
        0.9613,
        -0.4053,
        2.451,
        1.848,
        2.119,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.812,
        2.89,
        -0.04445,
        0.5546,
        0.06682,
        -0.9171,
        0.1823,
        -0.06285,
        -0.4266,
        0.273,
        -0.3515,
        -0.9901,
        -0.1105,
        -0.3542,
        -1.304,
        -0.6073,
        -1.263,
        1.759,
        0.6827,
        -0.6996,
        0.3596,
        0.4049,
        0.9824,
        -0.05203,
        3.6,
        0.03192,
        0.1312,
    ]
)
"""The same of the best candidate, then its score, its share among all, its lead, and the length of the question."""
BIAS: Final = -4.897
