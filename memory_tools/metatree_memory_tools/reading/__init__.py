"""A process of our own for files whose parsers are not linear, or not ours, with limits on time and memory.

`own_process` starts and asks it, `serving` is the loop in it, `_worker` what it is asked for; `outlines` are how what
lies in a file comes from it. Imports the core alone.
"""
