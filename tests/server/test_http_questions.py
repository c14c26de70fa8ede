"""Questions that nobody answers now are refused as such, and say when to ask again."""

from __future__ import annotations

from hub_calls import Caller

from fairway.app import Hub

STANDING = "/apis/fairway.dev/v1alpha1/fleets/fleet/standing"


async def test_a_hub_that_starts_or_ends_says_when_to_ask_again(hub: Hub, call: Caller) -> None:
    hub.api.questions.is_deciding = True
    try:
        refused = await call("GET", STANDING)
    finally:
        hub.api.questions.is_deciding = False
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "1"
    assert "ask again" in refused.json["message"]


async def test_a_hub_that_never_decides_says_so(call: Caller) -> None:
    refused = await call("GET", STANDING)
    assert refused.status == 503
    assert "Retry-After" not in refused.headers
    assert refused.json["message"] == "this hub makes no decisions"
