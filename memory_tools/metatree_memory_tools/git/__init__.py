"""Git as memory: the binary run safely (`command`), the index, the log, commits and blame, and the tools of a history.

Nothing that a repository asks for is run.
"""
