"""The embedded parts: router, reader, composer, describer and tool caller that need no model, no key and no server.

`suite.embedded_suite` is the entry. Imports query and embeddings; evidence comes from the request.
"""
