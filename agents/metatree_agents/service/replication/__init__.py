"""A tree on several machines: published by version, copied by block, memory kept in sync, runs shared."""
