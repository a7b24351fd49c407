"""What a question says: its terms, its sections, what it mentions outright, and which of its words matter.

Pure functions over text. Imports embeddings alone.
"""
