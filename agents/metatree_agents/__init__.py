"""Part of metatree."""
