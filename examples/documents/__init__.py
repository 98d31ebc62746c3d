"""Documents in two stages: fields early, the place of each on its page later."""
