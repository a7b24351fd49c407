"""The search: a machine over frames and marks, and the world that carries its effects out."""
