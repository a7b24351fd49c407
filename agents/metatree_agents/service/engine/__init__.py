"""An engine: claims topics, answers them by searches of a tree, and remembers what people recommend.

It talks to a service through `client`, or within the same process.
"""
