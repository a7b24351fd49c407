"""Packages that `metatree new-plugin` writes: names that may be used (`package`), and the texts of the files of each
kind of plug-in (`templates`), with `$name` and others in them.

It may import the core, and nothing of the command line; the command imports it.
"""
