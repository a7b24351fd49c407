"""The tool gateway: the tools of any number of servers behind three, found by search and called durably.

`servers_file` reads what is to be mounted, `_upstreams` starts and ends servers, `_catalog` is the tree of their tools,
`permission` decides and asks, `_results` bounds what comes back, `gateway` puts these together, and `mcp_tools` is the
MCP server in front. It may import `tools` and `hosts`; the command line imports it.
"""
