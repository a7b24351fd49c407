"""The search: its machine, the world that carries its effects out, and the functions that callers use.

`api` has `search` and its relatives; `_machine` is a pure step over `_state`, `_world` and `_toolbox` carry its effects
out, `_menu` makes the options of a node, `_tool_steps` walks a tool tree, `on_blackboard` writes what a search does.
Imports trees, tools, notes, the blackboard and the durable machine; routers come as parts.
"""
