"""Webhooks of other systems: verified, submitted as jobs, and answered once they are stored."""
