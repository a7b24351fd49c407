"""The lines that an agent reads first: how many of those that a fix changes are in them, and how much else is."""
