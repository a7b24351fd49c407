"""What other agents do with a tree, as function schemas and as an MCP server over stdio and HTTP.

`toolkit` does the work, `_registry` lists its tools, `_models` are their arguments and answers, whose words a model
reads. It may import the core and the parts that the core finds, no other room of the agents.
"""
