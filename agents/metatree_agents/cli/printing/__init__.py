"""What people see: answers, traces and agents of the planner as lines, and progress on a terminal.

It may import `_output`, and what the library gives to print; no command.
"""
