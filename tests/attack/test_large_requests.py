"""Requests that are small to send and large to read, decode or keep."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from fairway.api.documents import ManifestError, read_value
from fairway.api.errors import TooLarge
from fairway.app import Hub
from fairway.resources.metadata import ANNOTATIONS_MAX, LABELS_MAX
from fairway.schema.patches import COPIED_BYTES_MAX, json_patch
from fairway.server.wire.bodies import (
    BODY_BYTES_MAX,
    SMALL_BYTES_MAX,
    VALUES_MAX,
    YAML_BYTES_MAX,
    decode,
)
from fairway.server.wire.exchange import Request
from fairway.server.wire.options import object_body
from fairway.server.wire.warning_headers import warning_headers
from tests.hubs import running_hub
from tests.server.hub_calls import JSON_PATCH, Caller, calling, config_map
from tests.waiting import PATIENCE_SECONDS

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    yield from running_hub(tmp_path_factory.mktemp("hub"))


@pytest.fixture
async def call(hub: Hub) -> AsyncIterator[Caller]:
    async with calling(hub.kubeconfig) as caller:
        yield caller


async def answer_to_head(hub: Hub, token: str, *headers: str) -> bytes:
    """The first line of the answer to a request whose body is never sent."""
    where = urlsplit(hub.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=context)
    lines = [f"POST {CONFIG_MAPS} HTTP/1.1", "Host: hub", f"Authorization: Bearer {token}"]
    writer.write(("\r\n".join([*lines, *headers]) + "\r\n\r\n").encode())
    async with asyncio.timeout(PATIENCE_SECONDS):
        line = await reader.readline()
    writer.transport.abort()
    return line


@pytest.mark.parametrize(
    "header",
    ["Content-Length: 2000000", "Content-Length: 100000000", "Transfer-Encoding: chunked"],
)
async def test_a_stranger_is_refused_before_its_body_is_read(hub: Hub, header: str) -> None:
    assert b" 401 " in await answer_to_head(hub, "not-a-token", header)


async def test_a_body_that_says_it_is_too_large_is_refused_unread(hub: Hub) -> None:
    header = f"Content-Length: {BODY_BYTES_MAX + 1}"
    assert b" 413 " in await answer_to_head(hub, hub.token, header)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("DELETE", f"{CONFIG_MAPS}/none", id="options of a deletion"),
        pytest.param("GET", CONFIG_MAPS, id="a list"),
        pytest.param("POST", "/version", id="a plain path"),
        pytest.param("PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", id="a scale"),
    ],
)
async def test_a_body_has_the_limit_of_its_route(call: Caller, method: str, path: str) -> None:
    assert (await call(method, path, b" " * (SMALL_BYTES_MAX + 1))).status == 413


async def turns_while(decoding: Any) -> int:
    """How often the event loop turned while something was awaited."""
    task = asyncio.ensure_future(decoding)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        pytest.param(
            "application/yaml",
            "".join(f"key-{number}: value\n" for number in range(20_000)).encode(),
            id="YAML",
        ),
        pytest.param(
            "application/json",
            msgspec.json.encode({str(number): {"a": number} for number in range(60_000)}),
            id="JSON",
        ),
    ],
)
async def test_the_event_loop_turns_while_a_large_body_is_decoded(
    media_type: str, body: bytes
) -> None:
    request = Request(method="POST", path="/", headers=[("Content-Type", media_type)], body=body)
    # A body that is decoded on the loop lets it turn once.
    assert await turns_while(object_body(request)) > 1


async def test_more_values_than_an_object_needs_are_refused() -> None:
    body = b"[" + b"1," * VALUES_MAX + b"1]"
    with pytest.raises(TooLarge, match="values"):
        await decode(body, msgspec.json.decode)


async def test_large_yaml_is_refused_by_its_size(call: Caller) -> None:
    body = b"apiVersion: v1\n" + b"# comment\n" * (YAML_BYTES_MAX // 10)
    headers = {"Content-Type": "application/yaml"}
    assert (await call("POST", CONFIG_MAPS, io.BytesIO(body), headers=headers)).status == 413


async def test_deep_bodies_are_bad_requests(call: Caller) -> None:
    for deep in (b'{"a":' * 500_000, b"[" * 2_000_000, b"{a: " * 40_000):
        for kind in ("application/json", "application/yaml"):
            headers = {"Content-Type": kind}
            answer = await call("POST", CONFIG_MAPS, io.BytesIO(deep), headers=headers)
            assert answer.status in (400, 413), kind


def test_aliases_of_a_long_text_are_counted_by_its_length() -> None:
    text = "a: &a " + "x" * 100_000 + "\nb: [" + ", ".join(["*a"] * 50_000) + "]"
    with pytest.raises(ManifestError, match="aliases grow beyond"):
        read_value(text)


def doubling(times: int) -> list[dict[str, str]]:
    """Copies all of a document into a new key, again and again."""
    return [{"op": "copy", "from": "/data", "path": f"/data/{step}"} for step in range(times)]


def test_copies_of_a_patch_are_counted_in_bytes() -> None:
    document = {"data": {"text": "x" * 1000}}
    assert len(msgspec.json.encode(json_patch(document, doubling(8)))) < COPIED_BYTES_MAX
    with pytest.raises(TooLarge, match="accumulated size increase of copy"):
        json_patch(document, doubling(40))


async def test_a_patch_of_copies_does_not_double_an_object(call: Caller) -> None:
    await call("POST", CONFIG_MAPS, config_map("copied", a="x" * 1000))
    copies = [{"op": "copy", "from": "/data/a", "path": f"/data/b{step}"} for step in range(9_000)]
    answer = await call("PATCH", f"{CONFIG_MAPS}/copied", copies, headers=JSON_PATCH)
    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")


async def test_an_object_does_not_grow_by_small_patches(call: Caller) -> None:
    containers = [{"name": "a", "image": "a", "args": ["x" * 900_000]}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "grown"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    assert (await call("POST", path, body)).status == 201
    place = "/spec/template/spec/containers/0/args/"
    copies = [{"op": "copy", "from": f"{place}0", "path": f"{place}-"}] * 2
    trial = {"dryRun": "All"}
    for query, status in ((trial, 200), ({}, 200), (trial, 413), ({}, 413)):
        answer = await call("PATCH", f"{path}/grown", copies, headers=JSON_PATCH, **query)
        assert answer.status == status


@pytest.mark.parametrize(
    ("field", "most"), [("labels", LABELS_MAX), ("annotations", ANNOTATIONS_MAX)]
)
async def test_labels_and_annotations_are_counted(call: Caller, field: str, most: int) -> None:
    for count, status in ((10_000, 422), (most + 1, 422), (most, 201)):
        body = config_map(f"with-{count}-{field}")
        body["metadata"][field] = {f"key-{number}": "v" for number in range(count)}
        answer = await call("POST", CONFIG_MAPS, body)
        assert answer.status == status
        if status == 422:
            assert [cause["field"] for cause in answer.json["details"]["causes"]] == [
                f"metadata.{field}"
            ]


async def test_thousands_of_unknown_fields_are_few_warnings(call: Caller) -> None:
    body = {**config_map("warned"), **{f"unknown-{number}": 1 for number in range(5_000)}}
    answer = await call("POST", CONFIG_MAPS, body)
    assert answer.status == 201
    assert 0 < len(answer.warnings) <= 100
    assert sum(map(len, answer.warnings)) < 8_000


def test_a_long_warning_is_cut() -> None:
    values = list(warning_headers(["x" * 1_000_000, "short"]))
    assert [len(value) for value in values] == [len('299 - ""') + 256, len('299 - ""') + 5]


async def test_a_costly_expression_is_refused_with_its_field(call: Caller) -> None:
    costly = "cluster.labels.all(a, cluster.labels.all(b, cluster.claims.all(c, a + b != c)))"
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "costly"},
        "spec": {"selector": {"expressions": ["true", costly]}},
    }
    path = "/apis/fairway.dev/v1alpha1/namespaces/default/placementpolicies"
    answer = await call("POST", path, json.dumps(body).encode())
    assert answer.status == 422
    [cause] = answer.json["details"]["causes"]
    assert cause["field"] == "spec.selector.expressions[1]"
    assert "costs too much" in cause["message"]
