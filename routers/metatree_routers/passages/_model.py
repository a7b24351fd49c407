"""The numbers of the ranker and of the claim model, written by `python -m benchmarks.answers.fit`."""

from __future__ import annotations

from typing import Final

import numpy as np

RANKER: Final = np.array(
    [
        3.139,
        3.463,
        1.799,
        1.421,
        0.2581,
        2.284,
        -0.5436,
        -0.5177,
        1.92,
        0.483,
        0.1779,
        -0.8037,
        0.5952,
        -0.2544,
        -0.6659,
        0.2151,
        -0.652,
        0.6117,
        0.7134,
        -0.2327,
        0.54,
        0.6654,
        1.105,
        1.349,
        0.4834,
        1.631,
        -0.2139,
        0.6228,
        0.1415,
        1.535,
        -0.8327,
        -0.8702,
        -1.646,
        -1.136,
        -1.868,
        -2.298,
        1.162,
        -0.3059,
        -0.3738,
        0.03831,
    ]
)
"""Weight of each of `features.FEATURES`."""
CLAIM: Final = np.array(
    [
        2.085,
        -0.02982,
        -0.5064,
        -0.2649,
        -0.9927,
        0.1973,
        -1.43,
        -0.3522,
        -1.399,
        1.293,
        0.4575,
        0.0392,
        -0.9922,
        -1.065,
        1.144,
        1.198,
        0.2351,
        0.3764,
        -0.1859,
        1.016,
        0.4509,
        0.6801,
        -2.558,
        -2.265,
        -2.201,
        -0.8727,
        -1.316,
        -4.719,
        1.921,
        -0.5073,
        -0.6565,
        0.3129,
        1.837,
        -0.3303,
        0.7051,
        1.996,
        0.1948,
    ]
)
"""The same of those of `ranking._CLAIMED_BY`, of the best candidate; then its share among all, its lead, the length of
the question, the share of its node, and how much nearer its title is than others, against their spread."""
BIAS: Final = -5.695
