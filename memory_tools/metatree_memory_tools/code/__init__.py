"""Code as memory: Python by `ast`, other languages by tree-sitter (`languages/`), imports, references, tools.

Imports text alone of the rooms beside it.
"""
