"""The dashboard: pages for operators, over the same guarded verbs as the command and the gateway."""
