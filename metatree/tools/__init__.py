"""Tools that a search may call: what a tool is, which calls were made, and what stays open between calls.

`call_log` finds a call again by the hash of tool and arguments, so none is made twice whose result may be reused.
Imports storage, trees and protocols; nothing of searches.
"""
