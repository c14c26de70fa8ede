"""The script of the comparison of stores: calls of the interface, in order, with what controllers,
agents and people write.

Each step is a sentence and a call. Steps follow each other in one namespace, which is why names
occur again. `over` gives the object as it is now with some of it replaced, for an update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fairway.api.meta import API_VERSION, GROUP, VERSION
from fairway.store.interface import Deletion, Page, Patch, ResourceKey, Selection, Write

Json = dict[str, Any]
Call = Literal["create", "get", "list", "update", "patch", "delete", "watch"]

SPACE = "test-stores"
WORKLOADS = ResourceKey(GROUP, VERSION, "workloads")
QUEUES = ResourceKey(GROUP, VERSION, "queues")
LEASES = ResourceKey("coordination.k8s.io", "v1", "leases")
CONFIG_MAPS = ResourceKey("", "v1", "configmaps")
SECRETS = ResourceKey("", "v1", "secrets")
EVENTS = ResourceKey("", "v1", "events")
THINGS = ResourceKey("none.example.com", "v1", "things")
_NAMESPACED = (WORKLOADS, LEASES, CONFIG_MAPS, SECRETS, EVENTS, THINGS)
ANN, BOB = Write(user="ann", manager="ann"), Write(user="bob", manager="bob")
TRIAL = Write(user="ann", manager="ann", dry_run=True)
LENIENT = Write(user="ann", manager="ann", dry_run=True, field_validation="Warn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call, and its arguments."""

    say: str
    call: Call
    kind: ResourceKey = WORKLOADS
    name: str = ""
    body: Json | None = None
    over: Mapping[str, Any] | None = None
    patch: Patch | None = None
    subresource: str = ""
    write: Write = ANN
    how: Deletion = field(default_factory=Deletion)
    selection: Selection = field(default_factory=Selection)
    page: Page = field(default_factory=Page)
    namespace: str | None = None  # None: the test's own, for kinds that have namespaces
    events: int = 0  # of a watch, since the step before the first

    @property
    def where(self) -> str:
        if self.namespace is not None:
            return self.namespace
        return SPACE if self.kind in _NAMESPACED else ""


def workload(name: str, *, queue: str = "research", **more: Any) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {"name": name, **more.pop("metadata", {})},
        "spec": {"queue": queue, "podSets": [{"name": "main", "count": 2}], **more},
    }


def queue(name: str, **spec: Any) -> Json:
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def merge(**body: Any) -> Patch:
    return Patch(type="merge", body=body)


def labelled(name: str, **labels: str) -> Json:
    return workload(name, metadata={"labels": labels})


LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "term"}}
HELD = {"finalizers": ["fairway.dev/works"]}
QUOTA = [
    {
        "resources": ["nvidia.com/gpu"],
        "flavors": [{"name": "h100", "quotas": [{"resource": "nvidia.com/gpu", "nominal": 8}]}],
    }
]

STEPS = (
    # Making.
    Step(say="a workload is made, with its defaults", call="create", body=workload("a")),
    Step(say="it is read", call="get", name="a"),
    Step(say="it is not made twice", call="create", body=workload("a")),
    Step(say="one without a name", call="create", body={**workload(""), "metadata": {}}),
    Step(say="one whose name is no name", call="create", body=workload("No Name")),
    Step(say="one in a namespace that is not there", call="create", body=workload("b"),
         namespace="nowhere"),
    Step(say="one with a field that nobody knows", call="create", body=workload("b", colour="red")),
    Step(say="the same, if one does not mind", call="create", body=workload("b", colour="red"),
         write=LENIENT),
    Step(say="a word where a number belongs", call="create",
         body=workload("c", priority="high")),
    Step(say="a word that is not in the list", call="create", body=workload("c", mode="Party")),
    Step(say="a number that is too small", call="create",
         body=workload("c", podSets=[{"name": "main", "count": -1}])),
    Step(say="two pod sets of one name", call="create",
         body=workload("c", podSets=[{"name": "main"}, {"name": "main"}])),
    Step(say="what its rules forbid", call="create", body=workload("c", podSets=[])),
    Step(say="a status that its maker wrote is not kept", call="create",
         body={**workload("c"), "status": {"phase": "Running"}}),
    Step(say="a trial is answered as if it were made", call="create", body=workload("d"),
         write=TRIAL),
    Step(say="and is not there", call="get", name="d"),
    Step(say="what is of no kind", call="create", kind=THINGS,
         body={"apiVersion": "none.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}),
    Step(say="a queue, which has no namespace", call="create", kind=QUEUES,
         body=queue("stores-research", resourceGroups=QUOTA)),
    Step(say="a configuration", call="create", kind=CONFIG_MAPS, body=config_map("a", key="1")),
    Step(say="a secret, by text", call="create", kind=SECRETS,
         body={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
               "stringData": {"key": "word"}}),
    Step(say="a lease", call="create", kind=LEASES,
         body={**LEASE, "spec": {"holderIdentity": "one", "leaseTransitions": 1}}),
    # Replacing.
    Step(say="a spec is replaced, and its generation goes up", call="update", name="a",
         over={"spec": workload("a", priority=5)["spec"]}),
    Step(say="replaced by the same, it stays as it is", call="update", name="a", over={}),
    Step(say="a version of the past is refused", call="update", name="a",
         over={"metadata": {"name": "a", "resourceVersion": "1"}}),
    Step(say="without a version, the last word counts", call="update", name="c",
         body=workload("c", priority=3)),
    Step(say="what is not there cannot be replaced", call="update", body=workload("nobody")),
    Step(say="its uid cannot be another", call="update", name="a",
         over={"metadata": {"name": "a", "uid": "00000000-0000-0000-0000-000000000000"}}),
    Step(say="a lease is taken over by its version", call="update", kind=LEASES, name="term",
         over={"spec": {"holderIdentity": "two", "leaseTransitions": 2}}),
    Step(say="a lease of the past is refused", call="update", kind=LEASES, name="term",
         over={"metadata": {"name": "term", "resourceVersion": "1"}}),
    # Status.
    Step(say="a status is replaced, and the generation stays", call="update", name="a",
         subresource="status", over={"status": {"phase": "Waiting", "observedGeneration": 2}}),
    Step(say="a spec beside a status is left as it was", call="update", name="a",
         subresource="status", over={"spec": {"queue": "other"}, "status": {"phase": "Held"}}),
    Step(say="a status that says what it may not", call="update", name="a",
         subresource="status", over={"status": {"phase": "Dreaming"}}),
    Step(say="a status is patched", call="patch", name="a", subresource="status",
         patch=merge(status={"reason": "QuotaExceeded"})),
    Step(say="a status of what has none", call="update", kind=CONFIG_MAPS, name="a",
         subresource="status", over={}),
    # Patching.
    Step(say="a label is added", call="patch", name="a",
         patch=merge(metadata={"labels": {"x": "y"}})),
    Step(say="a label is taken away", call="patch", name="a",
         patch=merge(metadata={"labels": {"x": None}})),
    Step(say="a patch that changes nothing", call="patch", name="a",
         patch=merge(spec={"priority": 5})),
    Step(say="a patch by pointers", call="patch", name="a",
         patch=Patch(type="json", body=[{"op": "replace", "path": "/spec/priority", "value": 7}])),
    Step(say="a patch whose test fails", call="patch", name="a",
         patch=Patch(type="json", body=[{"op": "test", "path": "/spec/priority", "value": 1}])),
    Step(say="a patch of a path that is not there", call="patch", name="a",
         patch=Patch(type="json", body=[{"op": "remove", "path": "/spec/nothing"}])),
    Step(say="a strategic patch of a custom kind", call="patch", name="a",
         patch=Patch(type="strategic", body={"spec": {"priority": 1}})),
    Step(say="a strategic patch of a configuration", call="patch", kind=CONFIG_MAPS, name="a",
         patch=Patch(type="strategic", body={"data": {"key": "2", "other": "3"}})),
    Step(say="a patch that names a version of the past", call="patch", name="a",
         patch=merge(metadata={"resourceVersion": "1", "labels": {"x": "y"}})),
    Step(say="a patch that breaks a rule", call="patch", name="a",
         patch=merge(spec={"mode": "Party"})),
    Step(say="a patch of what is not there", call="patch", name="nobody", patch=merge(spec={})),
    # Applying.
    Step(say="an apply makes what is not there", call="patch", kind=CONFIG_MAPS, name="applied",
         patch=Patch(type="apply", body=config_map("applied", one="1", two="2"))),
    Step(say="another's field is theirs", call="patch", kind=CONFIG_MAPS, name="applied", write=BOB,
         patch=Patch(type="apply", body=config_map("applied", one="9"))),
    Step(say="unless it is taken by force", call="patch", kind=CONFIG_MAPS, name="applied",
         write=BOB,
         patch=Patch(type="apply", body=config_map("applied", one="9"), force=True)),
    Step(say="what is applied no more goes", call="patch", kind=CONFIG_MAPS, name="applied",
         patch=Patch(type="apply", body=config_map("applied"))),
    # Lists.
    Step(say="a labelled one", call="create", body=labelled("l1", team="red", rank="1")),
    Step(say="another", call="create", body=labelled("l2", team="blue", rank="2")),
    Step(say="all, in order of their names", call="list"),
    Step(say="by a label", call="list", selection=Selection(labels="team=red")),
    Step(say="by several conditions", call="list",
         selection=Selection(labels="team in (red, blue),rank!=1")),
    Step(say="by a name", call="list", selection=Selection(fields="metadata.name=l2")),
    Step(say="by a field that cannot be asked for", call="list",
         selection=Selection(fields="spec.priority=5")),
    Step(say="by a selector that is none", call="list", selection=Selection(labels="a in (")),
    Step(say="the first page", call="list", page=Page(limit=2)),
    Step(say="a page that goes on from nowhere", call="list", page=Page(continue_from="garbage")),
    Step(say="of no kind", call="list", kind=THINGS),
    # Deleting.
    Step(say="one that is held ends, but stays", call="patch", name="l1",
         patch=merge(metadata=HELD)),
    Step(say="it is deleted", call="delete", name="l1"),
    Step(say="deleted again, it is as it was", call="delete", name="l1"),
    Step(say="nothing holds it later than that", call="patch", name="l1",
         patch=merge(metadata={"finalizers": ["fairway.dev/works", "example.com/late"]})),
    Step(say="let go, it is no more", call="patch", name="l1",
         patch=merge(metadata={"finalizers": None})),
    Step(say="it is gone", call="get", name="l1"),
    Step(say="by another uid", call="delete", name="l2", how=Deletion(uid="0-0")),
    Step(say="by a version of the past", call="delete", name="l2", how=Deletion(version="1")),
    Step(say="a trial of a deletion", call="delete", name="l2", write=TRIAL),
    Step(say="another is deleted", call="delete", name="l2"),
    Step(say="what is not there", call="delete", name="l2"),
    Step(say="the queue is deleted", call="delete", kind=QUEUES, name="stores-research"),
    # Watching, from the beginning of it all.
    Step(say="what was told of configurations", call="watch", kind=CONFIG_MAPS, events=5),
    Step(say="what was told of leases", call="watch", kind=LEASES, events=2),
    Step(say="what was told of labelled workloads", call="watch", events=5,
         selection=Selection(labels="team")),
)  # fmt: skip
