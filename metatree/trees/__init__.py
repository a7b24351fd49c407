"""Trees of nodes: the store of one layer, the overlay of what was added over what was built, sources, history.

`tree.Tree` is the entry. `layer` holds the rows of one store, `overlay` lays a memory layer over a built one, `edits`
changes it, `content` reads texts from their sources, `source_types` has the protocols of plug-ins.
Imports storage and nodes; knows nothing of searches, routers and boards.
"""
