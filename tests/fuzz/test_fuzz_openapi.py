"""The served OpenAPI documents are what the hub does: schemathesis reads each, and asks for
everything in it over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fairway.api import crds
from fairway.resources.catalogue import standard_catalogue
from fairway.server.documents import openapi
from tests.fuzz.budget import budget
from tests.fuzz.serving import serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# An answered review does not repeat the token that its schema asks the question to hold.
WITHOUT_SCHEMA = frozenset({"/apis/authentication.k8s.io/v1/tokenreviews"})
# Only a hub that decides answers these; the tests of its controllers ask them.
ANSWERED_BY_DECIDERS = ("/traffic",)
PLACES = {"namespace": "default", "name": "a"}


def _documents() -> list[str]:
    catalogue = standard_catalogue()
    for definition in crds.definitions():
        catalogue.put_definition(definition)
    return list(openapi.by_path(catalogue))


@dataclass(frozen=True)
class Client:
    url: str
    session: requests.Session
    authority: str

    def document(self, path: str) -> dict[str, Any]:
        answer = self.session.get(f"{self.url}/openapi/v3/{path}", verify=self.authority)
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = answer.json()
        return read


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(tmp_path) as hub, requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {hub.token}"
        yield Client(hub.url, session, str(tmp_path / "tls" / "ca.crt"))


@pytest.mark.parametrize("path", _documents())
def test_the_hub_does_what_its_document_says(client: Client, path: str) -> None:
    schema = schemathesis.openapi.from_dict(client.document(path))
    schema.config.update(base_url=client.url)
    tried = 0
    for found in schema.get_all_operations():
        if not found.ok().path.endswith(ANSWERED_BY_DECIDERS):
            _try(client, found.ok())
            tried += 1
    assert tried


def _try(client: Client, operation: Any) -> None:
    """Asks for one operation a few times, of the object that may be there and of others."""
    known = {key: PLACES[key] for key in PLACES if f"{{{key}}}" in operation.path}
    checks = [
        check
        for check in CHECKS
        if check is not response_schema_conformance or operation.path not in WITHOUT_SCHEMA
    ]

    # A failing case is printed as a curl command; to shrink one over HTTP takes minutes.
    @settings(budget(1), phases=[Phase.generate])
    @given(operation.as_strategy(path_parameters=known or None))
    def ask(case: Any) -> None:
        query = dict(case.query or {})
        query.pop("watch", None)  # a watch has no end to wait for
        case.query = query
        answer = case.call(session=client.session, verify=client.authority)
        case.validate_response(answer, checks=checks)

    ask()
