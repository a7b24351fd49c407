"""An agent in the loop without a model: how much it reads until it has seen what a fix changes, by its tools."""
