"""The parameters of questions: what cannot be meant is refused with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairway.api.errors import BadRequest
from fairway.server.questions.parameters import decisions_of, timeline_of
from fairway.server.wire.exchange import Request

LONG = "9" * 5_000


def asked(**query: str) -> Request:
    return Request(method="GET", path="/", query=tuple(query.items()))


@pytest.mark.parametrize(
    ("read", "query", "said"),
    [
        (decisions_of, {"limit": "-1"}, "limit: expected a whole number"),
        (decisions_of, {"limit": "many"}, "limit: expected a whole number"),
        (decisions_of, {"limit": "²"}, "limit: expected a whole number"),
        (decisions_of, {"limit": LONG}, "limit: expected a whole number"),
        (timeline_of, {"most": LONG}, "most: expected a whole number"),
        (timeline_of, {"by": "user"}, "by: expected cluster or queue"),
        (timeline_of, {"from": "noon"}, "from: expected seconds"),
        (timeline_of, {"to": "inf"}, "to: expected seconds"),
        (timeline_of, {"from": "-1e308", "to": "1e308"}, "from: expected seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_name(
    read: Callable[[Request], Any], query: dict[str, str], said: str
) -> None:
    with pytest.raises(BadRequest, match=said) as refused:
        read(asked(**query))
    assert len(refused.value.message) < 200


def test_a_timeline_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(BadRequest, match="from: expected a moment before to"):
        timeline_of(asked(**{"from": "60", "to": "-60"})).between(1_800_000_000.0)


def test_limits_hold_for_who_asks_for_more() -> None:
    assert decisions_of(asked(limit="999999")) == ("", 5_000)
    assert timeline_of(asked(most="999999")).most == 1_000
