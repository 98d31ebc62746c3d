"""Jobs, states, retry rules and payloads. No I/O and no clock of its own."""
