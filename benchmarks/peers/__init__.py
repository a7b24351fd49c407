"""The same tree, the same questions and the same stub model for several ways of searching a tree."""
