"""Where everything is kept: a SQLite file or a PostgreSQL database, its schema, and whom a file is trusted to.

`Database` is what the rest of the code is written for; `store` is SQLite's, `postgres_store` PostgreSQL's. `schema` has
the tables and their version, `_older` moves files of earlier ones. `postgres` and `postgres_address` are what all
connections to PostgreSQL share; `trust` and `acceptance` say whose a file is. Imports errors alone; knows nothing of
nodes, runs and boards.
"""
