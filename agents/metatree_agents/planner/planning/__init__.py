"""Planning: from goals and facts to a network of intents, as a function over plain data.

`planning.plan` is the entry. Imports domain alone.
"""
