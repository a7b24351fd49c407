"""Signals of a ranking, one file each: what speaks for a node beside its own words, and the clause that says so.

A signal is added here, and called in `report` or `question`.
"""
