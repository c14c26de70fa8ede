"""A caller that no API server told the path cannot make a hub convert objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.api.errors import BadRequest
from fairway.app import HubOptions, open_hub
from fairway.server.wire.admissions import Admissions
from fairway.server.wire.conversions import Conversions
from fairway.server.wire.exchange import Request

FLAVOR = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Flavor",
    "metadata": {"name": "h100"},
    "spec": {"nodeLabels": {"accelerator": "h100"}},
}


def question(path: str, *flavors: object) -> Request:
    asked = {"uid": "7", "desiredAPIVersion": "fairway.dev/v1beta1", "objects": flavors}
    return Request(method="POST", path=path, body=json.dumps({"request": asked}).encode())


async def test_an_embedded_hub_converts_for_no_caller(tmp_path: Path) -> None:
    async with open_hub(HubOptions(data=tmp_path, port=0, has_controllers=False)) as hub:
        for path in ("/convert", hub.api.conversions.path()):
            response = await hub.api.answer(question(path, FLAVOR))
            assert response.status == 403, path


async def test_only_the_server_finds_the_path_and_gets_an_answer() -> None:
    conversions = Conversions(lambda: b"secret")
    path = conversions.path()
    assert not conversions.is_asked(question(path))
    conversions.is_open = True
    for wrong in ("/convert", "/convert/", path[:-1], path + "0", "/convert/é"):
        assert not conversions.is_asked(question(wrong))
    assert not conversions.is_asked(Request(method="GET", path=path))
    assert conversions.is_asked(question(path))
    answer = json.loads((await conversions.answer(question(path, FLAVOR))).body)["response"]
    assert answer["convertedObjects"][0]["apiVersion"] == "fairway.dev/v1beta1"
    with pytest.raises(BadRequest, match="no ConversionReview"):
        await conversions.answer(Request(method="POST", path=path, body=b"{}"))


def test_who_knows_the_path_of_one_webhook_does_not_know_that_of_another() -> None:
    conversion, admission = Conversions(lambda: b"secret"), Admissions(lambda: b"secret")
    assert conversion.path().rpartition("/")[2] != admission.path().rpartition("/")[2]
    assert Conversions(lambda: b"secret").path() == conversion.path(), "replicas share it"
    assert Conversions(lambda: b"another").path() != conversion.path()
