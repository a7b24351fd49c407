"""Agents on PostgreSQL: their journal, and jobs of procrastinate that drive them on many machines."""

from __future__ import annotations
