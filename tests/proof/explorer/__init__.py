"""Which orders are played, and how one is."""
