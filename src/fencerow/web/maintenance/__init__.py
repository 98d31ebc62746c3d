"""Maintenance of the gateways: while it lasts they take no requests. The guide: docs/guide/http-operations.md."""
