"""Passages: stretches of some twelve lines that may answer a question, ranked, with how likely the best one answers.

`ranking.rank_passages` is the entry. Imports index, query and embeddings; evidence, reader and search use it.
"""
