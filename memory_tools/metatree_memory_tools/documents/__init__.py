"""Documents as trees of sections and pages: PDF, HTML, docx, reStructuredText, and what libraries make Markdown of."""
