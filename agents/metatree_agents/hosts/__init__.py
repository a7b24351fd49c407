"""Set-up of agent hosts: which there are (`table`), edits of their files (`_json_edits`, `_toml_edits`), what was
written (`_records`), and `install`, which plans and makes the changes.

It may import the words that models read from `tools`, and no other room of the agents; the command line imports it.
"""
