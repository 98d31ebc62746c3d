"""Jobs that an HTTP endpoint works, in any language: `worked_over_http`."""
