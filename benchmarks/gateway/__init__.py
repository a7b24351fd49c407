"""The tool gateway: the right tools among the first five, what that costs in tokens, and the time of a call."""
