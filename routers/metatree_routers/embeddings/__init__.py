"""Vectors of texts: static ones from the wordllama wheel, MiniLM by request, and the choice between them."""
