"""The search: its machine, the world that carries its effects out, and the functions that callers use."""
