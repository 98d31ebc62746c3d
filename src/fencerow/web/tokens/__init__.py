"""Who may pass: API tokens."""
