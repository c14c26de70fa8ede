"""What a Prometheus may answer, and what becomes of it: samples, or one of a few typed failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairway.clock import SystemClock
from fairway.metrics.interface import (
    Address,
    MetricsFault,
    NoSample,
    Refused,
    Sample,
    SeveralSamples,
    Unreachable,
    value,
)
from fairway.metrics.prometheus import PrometheusSources
from tests.client.scripted_server import Answer, Script, says, serving


def vector(*values: str) -> dict[str, Any]:
    result = [
        {"metric": {"pod": f"p{number}"}, "value": [1_800_000_000.5, text]}
        for number, text in enumerate(values)
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


SCALAR = {"status": "success", "data": {"resultType": "scalar", "result": [12, "3"]}}
MATRIX = {"status": "success", "data": {"resultType": "matrix", "result": []}}
BAD_QUERY = {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"}
TOO_SLOW = {"status": "error", "errorType": "timeout", "error": "query timed out"}


@pytest.fixture
async def sources() -> AsyncIterator[PrometheusSources]:
    found = PrometheusSources(SystemClock())
    yield found
    await found.close()


def address(script: Script) -> Address:
    return Address(url=script.access.server, token="secret")


async def test_samples_come_with_labels_and_their_moment(sources: PrometheusSources) -> None:
    async with serving(says(vector("1.5", "2"))) as script:
        samples = await sources.at(address(script)).vector("up", at=7.25)
    assert samples == (
        Sample(value=1.5, at=1_800_000_000.5, labels={"pod": "p0"}),
        Sample(value=2.0, at=1_800_000_000.5, labels={"pod": "p1"}),
    )
    (request,) = script.seen
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.path == "/api/v1/query"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(says(vector("4")), 4.0, id="a vector of one"),
        pytest.param(says(SCALAR), 3.0, id="a scalar"),
        pytest.param(says(vector("NaN", "5")), 5.0, id="what is no number is no sample"),
    ],
)
async def test_one_number_is_had(
    sources: PrometheusSources, answer: Answer, expected: float
) -> None:
    async with serving(answer) as script:
        assert await value(sources.at(address(script)), "q") == expected


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        pytest.param(says(vector()), NoSample, id="nothing measured is not zero"),
        pytest.param(says(vector("+Inf")), NoSample, id="infinity is no sample"),
        pytest.param(says(vector("1", "2")), SeveralSamples, id="several samples"),
        pytest.param(says(MATRIX), Refused, id="a range of samples"),
        pytest.param(says(BAD_QUERY, status=400), Refused, id="a query that cannot be read"),
        pytest.param(says({}, status=401), Refused, id="a token that is not known"),
        pytest.param(says(TOO_SLOW, status=503), Unreachable, id="a query that takes too long"),
        pytest.param(
            says("gateway", status=502), Unreachable, id="a proxy without a server behind it"
        ),
        pytest.param(says("hello"), Refused, id="a server of another sort"),
    ],
)
async def test_what_yields_no_number_is_a_typed_fault(
    sources: PrometheusSources, answer: Answer, fault: type[MetricsFault]
) -> None:
    async with serving(answer) as script:
        with pytest.raises(fault):
            await value(sources.at(address(script)), "q")


async def test_a_server_that_is_not_there_is_unreachable(sources: PrometheusSources) -> None:
    with pytest.raises(Unreachable, match="connection refused"):
        await sources.at(Address(url="http://127.0.0.1:1")).vector("up")


async def test_one_address_has_one_source(sources: PrometheusSources) -> None:
    first = sources.at(Address(url="http://127.0.0.1:1"))
    assert sources.at(Address(url="http://127.0.0.1:1")) is first
    assert sources.at(Address(url="http://127.0.0.1:1", token="another")) is not first
