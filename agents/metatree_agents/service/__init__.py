"""The query service: topics, queries, engines that answer them, over HTTP; see docs/service.md.

`_app` puts it together and `serving` runs it. Rooms: `queue`, `accounts`, `database` (state), `http`, `openai`, `web`
(routes), `engine` (what answers), `replication` (a tree on several machines).
Imports nothing of the command line and the planner.
"""
