"""The whole hub on virtual time."""

from __future__ import annotations

from tests.controllers.conftest import clock, store

__all__ = ["clock", "store"]
