"""Code in other languages than Python as trees of definitions, by tree-sitter."""
