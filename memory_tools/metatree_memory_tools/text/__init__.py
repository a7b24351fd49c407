"""Plain text and Markdown as memory, and what all types of text share: descriptions, unique names, lines, patterns.

Imports nothing of the rooms beside it.
"""
