"""Large payloads outside the database: what a store must do, and the two that are shipped."""
