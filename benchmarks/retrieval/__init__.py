"""How well are pages, passages, turns, tools and files found without a model? One command for each set of questions."""
