"""The document-extraction example: what it knows about PDFs, and nothing about jobs."""
