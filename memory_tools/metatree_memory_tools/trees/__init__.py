"""A tree as a source of another tree: mounted read-only, and read through it."""
