"""Does `ask` claim what the texts say, and is it silent where they say nothing? One command for all sets."""
