"""The question `fleets/fleet/history` to a hub that runs, by those who may ask and see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairway.clock import VirtualClock
from fairway.hub.agent_lines import Reaching
from fairway.hub.answers import HubAnswers
from fairway.server.access.bootstrap_roles import bootstrap_objects
from fairway.server.access.identity import Identity
from fairway.server.access.rbac import Authorizer
from fairway.server.access.rbac_rules import Attributes
from fairway.server.objects import Call
from fairway.server.questions.questions import Questions
from fairway.server.routes import target_of
from fairway.server.wire.exchange import Request
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_history_run import SERVICE
from tests.controllers.test_running import FLEET

PATH = "/apis/fairway.dev/v1alpha1/fleets/fleet/history"
_RBAC = "rbac.authorization.k8s.io"
VISITOR = Identity(user="visitor")
BINDING = {
    "kind": "RoleBinding",
    "metadata": {"name": "visitors", "namespace": "team"},
    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"},
    "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": "visitor"}],
}


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET + "---\n" + SERVICE)
        await found.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team}}")
        await found.apply(SERVICE.replace("namespace: default", "namespace: team"))
        await clock.advance(60)
        yield found


async def ask(fleet: Fleet, identity: Identity, **query: str) -> dict[str, Any]:
    authorizer = Authorizer([*bootstrap_objects(), BINDING])
    reaching = Reaching(fleet.agents, fleet.plane.cache, fleet.clock)
    questions = Questions(fleet.store, authorizer, HubAnswers(fleet.plane, reaching))
    request = Request(method="GET", path=PATH, query=tuple(query.items()))
    target = target_of(request)
    resource = fleet.store.catalogue.find(target.group, target.version, target.plural)
    call = Call(request=request, target=target, resource=resource, identity=identity)
    assert questions.answers(call)
    found: dict[str, Any] = msgspec.json.decode((await questions.answer(call)).body)
    await reaching.close()
    return found


async def test_an_administrator_is_told_of_all_services(fleet: Fleet) -> None:
    admin = Identity(user="admin", groups=("system:masters",))
    found = await ask(fleet, admin, series="services", name="default/chat,team/chat")
    assert [item["name"] for item in found["found"]] == ["default/chat", "team/chat"]
    assert found["found"][0]["values"]["wanted"][-1] == 3
    assert len(found["found"][0]["values"]["wanted"]) == len(found["times"])


async def test_who_may_look_into_one_namespace_is_told_of_its_services_alone(fleet: Fleet) -> None:
    found = await ask(fleet, VISITOR, series="services", name="default/chat,team/chat")
    assert [item["name"] for item in found["found"]] == ["team/chat"]


async def test_queues_are_told_at_as_many_moments_as_were_asked_for(fleet: Fleet) -> None:
    found = await ask(fleet, VISITOR, series="queues", name="research", points="4", since="60")
    assert (found["step"], len(found["times"])) == (20, 4)
    assert found["found"][0]["parts"][0]["values"]["nominal"][-1] == 32


async def test_the_right_to_ask_comes_with_view() -> None:
    authorizer = Authorizer([*bootstrap_objects(), {**BINDING, "kind": "ClusterRoleBinding"}])
    wanted = Attributes(
        user="visitor", verb="get", group="fairway.dev", resource="fleets", subresource="history"
    )
    assert authorizer.authorize(wanted).allowed
