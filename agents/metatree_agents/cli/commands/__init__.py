"""The commands, one file each, or one for each group; `metatree_agents.cli._main` puts them together.

A command reads its options, calls the library, and prints by `output`; it holds no logic of its own. What costs time to
import, a command imports inside its function.
"""
