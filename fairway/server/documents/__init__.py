"""Documents about the hub itself: discovery, OpenAPI, health, metrics, the page's files."""
