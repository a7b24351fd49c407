"""What people and agents add to a tree: notes, where they are placed, feedback on nodes, permissions for tools.

Public are `remember`, `memories`, `forget` (of `metatree`), `export_memory` and `import_memory` (of `archive`).
Below it are `archive/` (all of it in one file) and `replication/` (all of it on other machines).
Imports trees, storage and tools.
"""
