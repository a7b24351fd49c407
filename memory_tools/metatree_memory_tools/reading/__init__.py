"""A process of our own for files whose parsers are not linear, or not ours, with limits on time and memory.

`own_process` starts and asks it, `_worker` runs in it, `outlines` are how what lies in a file comes from it. Imports
the core alone.
"""
