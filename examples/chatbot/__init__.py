"""A chatbot service on Fencerow: knowledge, sharded messages, broadcasts, inbound events."""
