"""HDDL, the hierarchical domain definition language of IPC 2020: reading, planning, checking and writing plans.

Source: Höller, Behnke, Bercher, Biundo, Fiorino, Pellier, Alford 2020, "HDDL: An Extension to PDDL for Expressing
Hierarchical Planning Problems".
"""

from __future__ import annotations
