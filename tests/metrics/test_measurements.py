"""What scorers measure: the protocol of HTTP scorers, files, and servers that misbehave."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from fairway.clock import SystemClock
from fairway.metrics.interface import Address, MetricsFault, Refused, Sample, Unreachable
from fairway.metrics.measurements import Asked, Measurement, read_values
from fairway.metrics.measuring import measure
from fairway.metrics.prometheus import PrometheusSources
from tests.metrics.scorers import Handler, Scorer, floods, hangs, says, scorer_server

CLOCK = SystemClock()
SERIES = (Asked(query="avg(load)", range_seconds=600, step_seconds=60),)


@pytest.fixture
async def scorer() -> AsyncIterator[Scorer]:
    async with scorer_server() as server:
        yield server


async def asked(measurement: Measurement) -> tuple[Sample, ...]:
    sources = PrometheusSources(CLOCK)
    try:
        return await measure(measurement, sources, CLOCK)
    finally:
        await sources.close()


def by_cluster(samples: tuple[Sample, ...]) -> dict[str, float]:
    return {sample.labels["cluster"]: sample.value for sample in samples}


async def test_series_are_sent_and_scores_come_back(scorer: Scorer) -> None:
    there = Address(url=f"{scorer.url}/scoring", token="secret")
    samples = await asked(
        Measurement(seconds=5, scorer=there, series=SERIES, server=Address(url=scorer.url))
    )
    assert by_cluster(samples) == {"oslo": 10.0, "berlin": 70.0}
    paths = [path for path, _, _ in scorer.asked]
    assert paths == ["/healthz", "/api/v1/query_range", "/scoring"]
    sent = scorer.asked[-1]
    assert sent[2] == "Bearer secret"
    assert len(sent[1]["data"][0]["values"]) == 11
    assert {value for _, value in sent[1]["data"][0]["values"]} == {"10.0"}


async def test_a_scorer_may_say_by_itself_what_it_needs(scorer: Scorer) -> None:
    params = {"query": "avg(load); max(load)", "range": 300, "step": 60}
    scorer.source = {"type": "Prometheus", "host": scorer.url, "params": params}
    config = Address(url=f"{scorer.url}/config", token="secret")
    samples = await asked(Measurement(seconds=5, config=config))
    assert len(samples) == 4, "two queries of two series each"
    assert [path for path, _, _ in scorer.asked] == [
        "/config", "/api/v1/query_range", "/api/v1/query_range", "/scoring",
    ]  # fmt: skip
    assert [seen for path, _, seen in scorer.asked if path != "/api/v1/query_range"] == [
        "Bearer secret", "Bearer secret",
    ]  # fmt: skip


async def test_a_token_is_not_sent_where_only_the_scorer_points(scorer: Scorer) -> None:
    async with scorer_server() as elsewhere:
        scorer.instead["/config"] = says(
            {"scoring": {"host": elsewhere.url, "path": "/scoring"}, "source": {"type": "None"}}
        )
        config = Address(url=f"{scorer.url}/config", token="secret")
        assert await asked(Measurement(seconds=5, config=config)) == ()
        assert elsewhere.asked == [("/scoring", {"data": None}, "")]


async def _redirects(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/")


def _results(*rows: Any) -> Handler:
    return says({"results": list(rows)})


CHAOS: dict[str, tuple[str, Handler, type[MetricsFault], str]] = {
    "it hangs": ("/scoring", hangs, Unreachable, "no answer within 0.5 s"),
    "its health hangs": ("/healthz", hangs, Unreachable, "no answer within 0.5 s"),
    "it is not healthy": ("/healthz", says({}, status=503), Unreachable, "is not healthy"),
    "it fails": ("/scoring", says({"detail": "no model"}, status=500), Unreachable, "no model"),
    "it refuses": ("/scoring", says({"detail": "no"}, status=422), Refused, "answers 422"),
    "it points elsewhere": ("/scoring", _redirects, Refused, "answers 302"),
    "it says no JSON": ("/scoring", says("oops"), Refused, "is not understood"),
    "a score is no number": (
        "/scoring", _results({"metric": {}, "score": "high"}), Refused, "is not understood"),
    "it floods": ("/scoring", floods, Unreachable, "more than 4194304 bytes"),
    "it says far too much": (
        "/scoring", _results(*[{"score": 1}] * 10_001), Refused, "more than 10000 values"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHAOS.values(), ids=list(CHAOS))
async def test_what_a_scorer_does_wrong_is_said(
    scorer: Scorer, case: tuple[str, Handler, type[MetricsFault], str]
) -> None:
    path, handler, kind, said = case
    scorer.instead[path] = handler
    seconds = 0.5 if "no answer" in said else 10.0
    with pytest.raises(kind, match=said):
        await asked(Measurement(seconds=seconds, scorer=Address(url=f"{scorer.url}/scoring")))


async def test_numbers_that_are_none_do_not_count(scorer: Scorer) -> None:
    async def nothing(_: web.Request) -> web.StreamResponse:
        rows = '{"results": [{"score": 1e999, "metric": {"a": 1, "b": null}}, {"score": 3}]}'
        return web.Response(text=rows, content_type="application/json")

    scorer.instead["/scoring"] = nothing
    there = Address(url=f"{scorer.url}/scoring")
    with pytest.raises(Refused, match="is not understood"):
        await asked(Measurement(seconds=5, scorer=there))
    scorer.instead["/scoring"] = _results({"score": 3, "metric": {"a": 1, "b": None}})
    (sample,) = await asked(Measurement(seconds=5, scorer=there))
    assert (sample.value, sample.labels) == (3.0, {"a": "1"})


FILES: dict[str, tuple[str, Any]] = {
    "rows": ("cluster,value\noslo,50\nberlin, 450.5\n", [("oslo", 50.0), ("berlin", 450.5)]),
    "no value": ("cluster,number\noslo,50\n", "no column named value"),
    "a word": ("cluster,value\noslo,low\n", "line 2 of the file: 'low' is not a number"),
    "no finite number": ("cluster,value\noslo,nan\n", "line 2 of the file: 'nan'"),
    "no text": ("\udcff", "the file is not CSV"),
    "empty": ("", "no column named value"),
}


@pytest.mark.parametrize("case", FILES.values(), ids=list(FILES))
def test_a_file_of_values(case: tuple[str, Any]) -> None:
    text, expected = case
    content = text.encode(errors="surrogateescape")
    if isinstance(expected, str):
        with pytest.raises(Refused, match=expected):
            list(read_values(content, 7.0))
    else:
        samples = list(read_values(content, 7.0))
        assert [(sample.labels["cluster"], sample.value) for sample in samples] == expected
        assert {sample.at for sample in samples} == {7.0}


async def test_a_file_is_read_from_its_address(scorer: Scorer) -> None:
    async def file(_: web.Request) -> web.StreamResponse:
        return web.Response(text="cluster,item,value\noslo,berlin,18\n")

    scorer.instead["/carbon.csv"] = file
    here = Address(url=f"{scorer.url}/carbon.csv?region=all", token="secret")
    (sample,) = await asked(Measurement(seconds=5, file=here))
    assert (sample.value, sample.labels) == (18.0, {"cluster": "oslo", "item": "berlin"})
    assert scorer.asked == [("/carbon.csv", None, "Bearer secret")]


def test_a_measurement_travels_to_an_agent_and_back() -> None:
    wanted = Measurement(seconds=5, query="load", server=Address(url="http://there", token="x"))
    sent = msgspec.json.encode(wanted)
    assert msgspec.json.decode(sent, type=Measurement) == wanted
    assert set(json.loads(sent)) == {"seconds", "query", "server"}
