"""What a model's word is worth beside the evidence: how often a model was right so far, and both weighed together.

Routers that ask a model use it for each decision. Imports `wrappers` for the cache in which it is remembered.
"""
