"""What the measurements of the query service share: its processes, and callers that cost little themselves."""
