"""The service's database: one interface, SQLite or PostgreSQL, its tables, backups, and word of changes elsewhere."""
