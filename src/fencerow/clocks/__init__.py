"""The database's clock, where it went back: what was written while it stood ahead is found and moved back."""
