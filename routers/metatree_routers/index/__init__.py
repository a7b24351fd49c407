"""The text index of a tree: terms, posting lists, node tables and vectors, following the tree's changes.

`index.TextIndex` is the entry; `store` keeps it in the SQLite file of the tree. Imports query and embeddings.
"""
