"""What may be asked of a history: bad parameters are named, and services are those one may list."""

from __future__ import annotations

import pytest

from fairway.api.errors import BadRequest
from fairway.server.questions.history import HistoryRequest, history_request
from fairway.server.wire.exchange import Request


def asked(mine: str = "team", **query: str) -> HistoryRequest:
    request = Request(method="GET", path="/", query=tuple(query.items()))
    return history_request(request, lambda namespace: namespace == mine)


def test_what_is_not_said_is_an_hour_of_the_whole_fleet() -> None:
    found = asked(series="queues")
    assert found == HistoryRequest(series="queues", names=("",), since=3600, points=120)


def test_names_are_told_apart_by_commas_and_each_is_answered_once() -> None:
    assert asked(series="clusters", name="one,two,one").names == ("one", "two")


def test_services_in_namespaces_that_one_may_not_list_are_as_if_there_were_none() -> None:
    assert asked(series="services", name="team/chat,other/chat").names == ("team/chat",)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "series: expected one of queues, clusters, services, got ''"),
        ({"series": "nodes"}, "series: expected one of"),
        ({"series": "queues", "since": "soon"}, "since: expected a whole number from 60"),
        ({"series": "queues", "since": "999999999"}, "since: expected a whole number from 60"),
        ({"series": "queues", "since": "9" * 5000}, "since: expected a whole number from 60"),
        ({"series": "queues", "points": "1"}, "points: expected a whole number from 2 to 1000"),
        ({"series": "services"}, "name: services are asked for by namespace/name"),
        ({"series": "queues", "name": ",".join(map(str, range(101)))}, "name: at most 100"),
    ],
)
def test_a_bad_parameter_is_named(query: dict[str, str], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        asked(**query)
