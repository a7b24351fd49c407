"""The incremental matcher: which productions have tokens, after each fact that came or went.

`network` is the entry; a query is planned (`plan`, `joins`), written out as a function (`emit`, `handlers`) and kept in
indexes (`alpha`, `views`, `aggregates`). `truth` takes back what was inferred, `explain` says why nothing matched.
Imports the language, nothing of the shell.
"""
