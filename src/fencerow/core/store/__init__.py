"""The job tables. Every verb is an `Operation`; see `fencerow.core.store.store` for all of them on one screen."""
