"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.305,
        2.712,
        1.755,
        2.257,
        0.3905,
        4.456,
        -1.29,
        -0.7387,
        0.3489,
        1.079,
        -0.5411,
        -1.548,
        0.2791,
        -0.4821,
        -1.412,
        -0.9958,
        -0.858,
        1.597,
        0.6493,
        -0.3509,
        1.928,
        1.458,
        2.046,
        1.605,
        1.393,
        1.999,
        -0.407,
        1.022,
        1.109,
        1.057,
        -1.251,
        -1.375,
        -3.386,
        -2.107,
        -2.248,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.451,
        0.5435,
        -0.09083,
        0.08963,
        -2.128,
        0.5587,
        -0.9445,
        -0.2555,
        -1.774,
        2.055,
        0.5458,
        -0.2967,
        -0.4454,
        0.5701,
        1.872,
        1.202,
        0.3239,
        0.4653,
        -0.1076,
        0.4244,
        0.3584,
        0.8673,
        -2.601,
        -3.03,
        -2.335,
        -1.278,
        -0.7167,
        2.234,
        -0.3356,
        0.8928,
        1.854,
        0.1655,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than others, against their spread."""
BIAS: Final = -7.068
