"""Which tools of this package a tree is offered; what they are made of is imported only then.

The tools of conversations are a plug-in and no part of the type of files, since turns that an agent noted come from no
file. Those of histories take the tree: a folder has them only when it was built with its history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metatree_memory_tools.node_ids import NOTED_CONVERSATIONS

if TYPE_CHECKING:
    from metatree.tools.tool import ToolGroup
    from metatree.trees.tree import Tree


def history_tools(tree: Tree) -> tuple[ToolGroup, ...]:
    """Return the tool tree of git histories for a tree that was built with them, none for any other."""
    if not any(source.options.get("history") for source in tree.sources()):
        return ()
    from metatree_memory_tools.git.tools import HISTORY_TOOLS

    return (HISTORY_TOOLS,)


def conversation_tools(tree: Tree) -> tuple[ToolGroup, ...]:
    """Return the tool tree of conversations for a tree with conversations in files or noted ones, none for others."""
    if NOTED_CONVERSATIONS not in tree and all(source.type != "chats" for source in tree.sources()):
        reader = "SELECT 1 FROM file WHERE reader LIKE 'conversation %' LIMIT 1"
        if tree.index.row(reader) is None:
            return ()
    from metatree_memory_tools.conversations.tools import CONVERSATION_TOOLS

    return (CONVERSATION_TOOLS,)
