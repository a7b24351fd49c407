"""One module for each format of export: what a file of it looks like, and its messages one by one.

All give `Message`s. A format is told by the content of a file, and reads it as a stream; what a file says is data. May
import `conversations._dates`, and nothing of the rest of the room.
"""
