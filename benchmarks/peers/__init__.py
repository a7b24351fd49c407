"""The same tree, the same questions and the same stub model for several ways of searching a tree."""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would look in the network, and warn
