"""The JSON that commands print, as types; docs/json.md is generated from them."""
