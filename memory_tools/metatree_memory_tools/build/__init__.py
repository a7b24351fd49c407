"""Building a tree from its sources, and bringing it up to date: only what changed is read.

`build.build_tree` is the entry; `scan` walks a folder, `read_file` reads and outlines one file, `files` and `source`
write what changed through `index_writer`, `history` adds commits. Imports the types of memory beside it.
"""
