"""What a hub says of itself: discovery, OpenAPI, health, metrics, the page's files."""
