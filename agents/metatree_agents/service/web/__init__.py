"""The web page of the service: for people, where the API is for programs. Python, templates, and small scripts.

One module of routes for each part of the page (`*_pages`), `sessions` and `_guard` for who is logged in, `_replies` for
what is rendered, under a strict content policy.
"""
