"""Small helpers that know nothing of metatree: threads, processes, graphs, cache folders, texts that look like secrets.

Imports nothing of this project but its errors. What two rooms need and neither owns may live here; a helper of one room
stays in that room.
"""
