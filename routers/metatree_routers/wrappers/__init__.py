"""Wrappers around a router and its relatives: cached, limited, recorded, with a fallback; all share `_wrapper`.

Each answers as the part that it holds, but for what it says. Imports nothing of the rooms beside it.
"""
