"""Floor 3: the job tables. Every verb is an `Operation`; see `fencerow.store.store` for all of them on one screen."""
