"""The API group of the serving kinds, apart from the core group so that it has its own versions."""

from __future__ import annotations

from fairway.api.meta import VERSION

SERVING_GROUP = "serving.fairway.dev"


def serving_api_version() -> str:
    return f"{SERVING_GROUP}/{VERSION}"
