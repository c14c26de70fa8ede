"""Requests and answers on the wire: HTTP, query parameters, bodies, tables, watches."""
