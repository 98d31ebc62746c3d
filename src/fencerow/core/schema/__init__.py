"""Our own schema: its migrations, the ledger of what was applied, and indexes that are built beside the work."""
