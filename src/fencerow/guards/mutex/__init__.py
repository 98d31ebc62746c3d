"""One holder at a time, under a token that never goes back."""
