"""The text and the values of rules: facts, conditions and productions as plain data, and reading them from text.

Imports nothing of the other rooms of `metatree.rules`.
"""
