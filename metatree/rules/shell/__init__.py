"""The control shell: which production may fire (`schedule`), which one does (`resolvers`), and what its logic did.

`machine` is the pure state machine that `metatree.durable` drives, `control` the shell that callers use, `program` the
text form of all of it. Imports the language, the matcher, the working memory and the durable machine.
"""
