"""Planning beside Aries and GTPyhop."""
