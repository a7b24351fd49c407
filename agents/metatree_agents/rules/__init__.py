"""Knowledge sources for the control shell that search a tree or ask a model."""
