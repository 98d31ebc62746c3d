"""Relays to and from brokers."""
