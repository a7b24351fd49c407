"""The JSON that commands print, as pydantic models by room; `registry` names them by command."""
