"""The command line, `metatree`."""

from metatree_agents.cli.app import main

__all__ = ["main"]
