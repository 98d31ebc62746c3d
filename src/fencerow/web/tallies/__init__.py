"""How often each hook took a webhook, got one again, and refused one: noted by gateways now and then."""
