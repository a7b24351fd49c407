"""The queue: topics and queries, claimed under a lease in a fair order; waiting for them; what a run asks a person.

`queue.Queue` is the entry. Imports database and accounts.
"""
