"""The explorer of a user's own races."""
