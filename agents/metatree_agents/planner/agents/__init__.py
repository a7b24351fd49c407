"""Durable agents: the machine that plans and carries out intents, what drives it, and where agents are kept.

`agents.Agents` is the entry. Imports planning, domain and the durable machine.
"""
