"""The web page of the service: for people, where the API is for programs. Python, templates, and small scripts.

One module of routes for each part of the page (`*_pages`), `sessions` and `_guard` for who is logged in, `_replies` for
what is rendered, under a strict content policy.

What needs a script is the tree by keyboard and a search that grows; all else is links and forms, which work without
any. Lost: htmx, which has neither of the two (server-sent events are an extension of it); a front-end framework,
which needs a build step; vendored fonts, as people's own are good.
"""
