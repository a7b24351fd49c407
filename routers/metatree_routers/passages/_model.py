"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.096,
        3.467,
        1.728,
        1.371,
        0.4999,
        2.083,
        -0.5799,
        -0.4653,
        1.896,
        0.3881,
        0.1884,
        -0.8532,
        0.6328,
        -0.3415,
        -0.7271,
        0.2837,
        -0.6856,
        0.6423,
        0.4093,
        -0.4591,
        0.4343,
        0.4802,
        1.082,
        1.504,
        0.5394,
        1.766,
        -0.2406,
        0.5865,
        0.1365,
        1.517,
        0.9677,
        -1.301,
        -1.877,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.183,
        -0.02316,
        -0.1619,
        -0.3776,
        -1.791,
        0.2663,
        -1.243,
        -0.5175,
        -1.438,
        0.9149,
        0.2738,
        -0.6356,
        -0.9121,
        -0.3893,
        1.71,
        0.9374,
        0.1783,
        0.5458,
        -0.1315,
        0.6121,
        0.6316,
        0.7277,
        1.242,
        -2.334,
        -1.351,
        2.444,
        -0.4362,
        0.647,
        1.627,
        0.2047,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than others, against their spread."""
BIAS: Final = -5.215
