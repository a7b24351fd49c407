"""The web page of the service: for people, where the API is for programs. Python, templates, and small scripts."""
