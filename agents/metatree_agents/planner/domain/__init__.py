"""Domains: relations, rules and tasks as plain data, how they are written (decorators, TOML, YAML), and the library.

Imports nothing of planning and agents.
"""
