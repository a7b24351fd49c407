"""What other agents do with a tree: one toolkit behind function schemas and an MCP server over stdio and HTTP.

`toolkit` does the work, `models` are its arguments and answers, whose words a model reads in their schemas.
"""
