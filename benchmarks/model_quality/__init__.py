"""What is found with models of every quality, from chance to perfect, beside what is found without a model."""
