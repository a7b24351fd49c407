"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        2.998,
        3.435,
        1.778,
        1.373,
        2.083,
        -0.579,
        -0.4833,
        1.886,
        0.3887,
        0.1211,
        -0.8457,
        0.6123,
        -0.3652,
        -0.7093,
        0.2715,
        -0.6869,
        0.6697,
        0.9866,
        0.4163,
        0.5472,
        1.072,
        1.516,
        0.5547,
        1.733,
        -0.2232,
        0.6478,
        0.09448,
        1.534,
        0.877,
        -1.344,
        -1.863,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.169,
        0.02881,
        -0.01457,
        -0.381,
        -1.746,
        0.2449,
        -1.218,
        -0.543,
        -1.269,
        0.8462,
        0.4518,
        -0.849,
        -0.5495,
        1.577,
        0.9249,
        0.1838,
        0.5909,
        -0.1361,
        0.5771,
        0.3994,
        0.7115,
        1.338,
        -2.742,
        -1.314,
        2.008,
        -0.3336,
        0.5978,
        1.834,
        0.2107,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than others, against their spread."""
BIAS: Final = -5.248
TURN_BIAS: Final = -1.25
"""Added to `BIAS` where the best candidate is a turn of a conversation: in those all words of a question stand in turns
that say another thing. Fitted on every second source of BEAM and LoCoMo, where `CLAIM` gives .5 or more; see
docs/benchmarks/answers.md."""
