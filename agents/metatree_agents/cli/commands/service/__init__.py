"""`metatree service`: what runs the query service, one file each, and what these commands share.

A command opens the database (`_database`), and leaves the work to `metatree_agents.service`.
"""
