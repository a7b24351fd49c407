"""Web pages as memory: fetching within address rules, pages as trees, a browser, and search on the web."""
