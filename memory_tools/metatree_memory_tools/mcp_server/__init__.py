"""Servers of the Model Context Protocol as memory: their tools and resources as nodes, and as a tool tree."""
