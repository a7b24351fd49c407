"""Where everything is kept: a SQLite file or a PostgreSQL database, its schema, and whom a file is trusted to.

`store` opens files and brings them to the schema of this version; `trust` and `acceptance` say whose a file is.
Imports errors alone; knows nothing of nodes, runs and boards.
"""
