"""OpenAPI descriptions as memory: operations as nodes by tag, and as a tool tree that calls them."""
