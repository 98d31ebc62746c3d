"""Safe moves on the user's own tables: they need no worker, and know nothing of the job tables."""
