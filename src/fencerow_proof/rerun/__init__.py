"""`fencerow rerun`: a stored job runs once more, beside its database, and what it does is compared with what it did."""
