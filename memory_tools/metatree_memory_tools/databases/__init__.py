"""Databases as sources: SQLite files and PostgreSQL, as schemas, tables, views, columns and sample rows."""
