"""Evidence from words: scores nodes for questions, and files for issues, each with its reason.

`evidence.TextEvidence` is the entry. `question` ranks nodes for a question, `report` files for an issue, both by
`ranking`; `signals/` has one file for each signal; `explain_nodes` and `explain_files` say why.
Imports index, query and embeddings.
"""
