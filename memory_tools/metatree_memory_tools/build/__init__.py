"""Building a tree from its sources, and bringing it up to date: only what changed is read.

`build.build_tree` is the entry; `_scan` walks a folder, `_read_file` reads and outlines one file, `_files` and
`_source` write what changed through `_index_writer`, `history` adds commits. Imports the rooms of the types of memory;
none of them imports this one.
"""
