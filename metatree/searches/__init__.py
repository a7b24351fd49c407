"""The search: its machine, the world that carries its effects out, and the functions that callers use.

`api` has `search` and its relatives, `_options` what they are given. `_machine` is a pure step over `_state`, in three
parts: `_tree_steps` goes from node to node, `_reading_steps` reads, `_tool_steps` walks a tool tree. What they ask of
the world is in `_effects`, what comes of it in `_outcomes`; `_world` and `_toolbox` execute it, `_menu` makes the
options of a node. `on_blackboard` writes what a search does.
Imports trees, tools, notes, the blackboard and the durable machine; routers come as parts.
"""
