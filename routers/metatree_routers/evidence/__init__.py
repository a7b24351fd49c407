"""Evidence from words: scores nodes for questions, and files for issues, each with its reason.

`evidence.TextEvidence` is the entry. `_question` ranks nodes for a question, `report` files for an issue, both by
`_ranking`. `signals/` has one file for each signal: it scores there, and says there in its `clauses` why. `_question`
or `_ranking` adds its scores, `_explain_nodes` or `_explain_files` its clauses.
Imports index, query and embeddings.
"""
