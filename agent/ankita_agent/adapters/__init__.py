"""The world: files, processes, clocks, SQLite, the service manager. No decisions are taken here."""
