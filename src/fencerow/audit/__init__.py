"""The audit log: what people changed by hand, by which way, and when. Written in the transaction of the change."""
