"""Requests and responses on the wire: HTTP, query parameters, bodies, tables, watches."""
