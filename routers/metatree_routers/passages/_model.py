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
        2.758,
        0.5568,
        0.03072,
        0.06699,
        -1.984,
        0.6584,
        -0.9419,
        -0.2954,
        -1.841,
        2.258,
        0.6122,
        -0.2942,
        -0.4305,
        0.6568,
        1.105,
        1.219,
        0.3208,
        0.6204,
        -0.133,
        0.4389,
        0.3365,
        0.958,
        -2.609,
        -3.067,
        -2.41,
        -1.274,
        -0.7829,
        1.859,
        -0.2939,
        0.9719,
        1.693,
        1.734,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than any other."""
BIAS: Final = -6.998
