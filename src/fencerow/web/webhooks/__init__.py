"""Webhooks: what the outside is told, signed, and sent only where it may go."""
