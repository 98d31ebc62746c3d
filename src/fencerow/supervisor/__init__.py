"""The process that starts worker processes and starts them again, and what tells others how a worker is."""
