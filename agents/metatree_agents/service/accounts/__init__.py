"""Who may call the service and how much: users, proofs, API keys, limits, and what administrators see."""
