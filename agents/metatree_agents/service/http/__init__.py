"""The routes of the service beside the page and `/v1`: the documented wire, engines, administrators, events, limits.

`routes` has the documented wire, byte for byte. Imports queue, accounts and database.
"""
