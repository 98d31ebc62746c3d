"""An agent of a language model as a durable job: `python -m examples.agent`. See README.md."""
