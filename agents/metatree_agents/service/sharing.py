"""What one server shares with other machines, as the command line asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metatree import Tree
from metatree.cache_folder import cache_folder
from metatree.shared import Shared
from metatree_agents.service.client import ServiceClient
from metatree_agents.service.publisher import Published
from metatree_agents.service.trees import Trees


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is shared, and how.

    Args:
        tree: what is published; None searches a copy of what another server publishes.
        engine: whether an engine runs inside.
        shared: keeps runs and tool calls for all machines.
        copies: where copies are kept.
        refresh_s: how often the tree is brought up to date with its sources; 0 for never.
    """

    tree: Tree | None
    engine: bool = True
    shared: Shared | None = None
    copies: Path | None = None
    refresh_s: float = 0.0

    def begin(self, client: ServiceClient, trees: Trees, say: Callable[[str], None]) -> Published:
        """Return the memory of this server; its `run` publishes.

        Raises:
            UserError: the tree cannot be published.
        """
        return Published(
            client,
            trees,
            self.tree,
            copies=self.copies or copies_folder(),
            shared=self.shared,
            refresh_s=self.refresh_s,
            say=say,
        )


def copies_folder() -> Path:
    """Return where copies of trees are kept unless something else is said."""
    return cache_folder() / "copies"
