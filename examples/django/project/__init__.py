"""The settings, the addresses and the server of the shop."""
