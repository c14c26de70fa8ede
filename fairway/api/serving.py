"""The group of the kinds that serve models, so that the core can reach its first version alone."""

from __future__ import annotations

from fairway.api.meta import VERSION

SERVING_GROUP = "serving.fairway.dev"


def serving_api_version() -> str:
    return f"{SERVING_GROUP}/{VERSION}"
