"""Policies by which a real server holds objects with a queue back from the hub's controllers.

There are three, all derived from the table `kinds.held_back` and all evaluated inside the server,
so that there is no webhook that could be down. One sets the field that holds an object back. One
refuses an object that is still not held back: because its kind has no such field, because the
server has no mutating policies (before Kubernetes 1.36), or because the installed definition lacks
the field. The third, mutating and validating, reserves the status of such an object for the hub, so
that two writers do not undo each other's writes forever.

All fail closed: what cannot be evaluated is refused. An object that existed before the policies is
left alone; otherwise its finalizers could not be removed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence

from fairway.api.errors import ApiError, NotFound
from fairway.api.meta import GROUP
from fairway.client.errors import UnknownKind
from fairway.kinds.decision import WORK
from fairway.kinds.held_back import GATED, Group, Means, advice, groups
from fairway.kinds.native import DEFAULT_QUEUE, QUEUE
from fairway.kinds.registry import Kinds, built_in
from fairway.schema.node import JsonObject
from fairway.store.keys import resource_of
from fairway.store.kubernetes.admission import API_VERSION, own_name, put
from fairway.store.kubernetes.store import KubernetesStore

NAME = f"held-back.{GROUP}"
STATUS_NAME = f"status-held-back.{GROUP}"
_MUTATING, _VALIDATING = "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"
_log = logging.getLogger(__name__)


async def hold_back(store: KubernetesStore) -> None:
    """Makes the server hold objects back; logs a warning if it does not, or only in part."""
    for policy, bound in pairs(await own_name(store)):
        try:
            await store.api.discovery.of({"apiVersion": API_VERSION, "kind": policy["kind"]})
            await put(store, policy)
            await put(store, bound)
        except UnknownKind:
            # Then people set the field themselves; an object without it is refused with advice.
            _log.warning("the server has no %s: native objects must say that they are held back",
                         policy["kind"])  # fmt: skip
        except (ApiError, NotFound) as fault:
            _log.warning("native objects may not be held back by the server: %s", fault)


def pairs(hub: str, kinds: Kinds | None = None) -> list[tuple[JsonObject, JsonObject]]:
    """Each policy with its binding, for a hub of this name."""
    result = groups(kinds or built_in())
    return [
        (policy, _binding(policy))
        for policy in (
            _writing(result),
            _refusing(result, kinds or built_in()),
            _keeping_status(result, hub, _MUTATING),
            _keeping_status(result, hub, _VALIDATING),
        )
    ]


def is_mutating(policy: JsonObject) -> bool:
    """Whether a policy or binding is mutating, which servers have from Kubernetes 1.36 on."""
    return str(policy["kind"]).startswith("Mutating")


def _binding(policy: JsonObject) -> JsonObject:
    name = policy["metadata"]["name"]
    actions = {} if is_mutating(policy) else {"validationActions": ["Deny"]}
    return {
        "apiVersion": API_VERSION,
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": name},
        "spec": {"policyName": name, **actions},
    }


# Which objects match.


def _queue(name: str) -> str:
    """The queue of an object: what it names itself, else the default of its namespace."""
    key = json.dumps(QUEUE[0])
    default = f"namespaceObject.?metadata.?labels[?{json.dumps(DEFAULT_QUEUE)}].orValue('')"
    said = f"{name}.metadata.?annotations[?{key}].orValue({default})"
    return f"{name}.metadata.?labels[?{key}].orValue({said})"


def _is_queued(name: str) -> str:
    """Whether an object has a queue; objects of a controller or an agent have none."""
    return f"({_queue(name)} != '' && {is_submitted(name)})"


def is_submitted(name: str) -> str:
    """Whether neither a controller nor an agent made an object."""
    owned = f"{name}.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))"
    made = f"{name}.metadata.?labels[?{json.dumps(WORK)}].hasValue()"
    return f"!{owned} && !{made}"


def _variables() -> list[JsonObject]:
    """Whether the object has a queue now, and had one before this change.

    These are not match conditions, which cannot read the namespace and its default queue.
    """
    before = f"oldObject != null && {_is_queued('oldObject')}"
    return [
        {"name": "isQueued", "expression": _is_queued("object")},
        {"name": "wasQueued", "expression": before},
    ]


def _is_held(means: Means, name: str) -> str:
    if means is GATED:
        gates = f"dyn({name}).?spec.?schedulingGates.orValue([])"
        return f"{gates}.exists(gate, gate.name == {json.dumps(means.value)})"
    place = f"dyn({name})" + "".join(f".?{key}" for key in means.path)
    values = [json.dumps(value) for value in (means.value, *means.also)]
    return "(" + " || ".join(f"{place} == optional.of({value})" for value in values) + ")"


def _is_of(group: Group) -> str:
    pairs = [
        f"(request.kind.group == {json.dumps(version.rpartition('/')[0])} && "
        f"request.kind.kind in {json.dumps(sorted(names))})"
        for version, names in _by_group(group).items()
    ]
    return "(" + " || ".join(pairs) + ")"


def submitted_queue(name: str) -> str:
    """The queue to which an object is submitted; empty if it is not."""
    return f"({is_submitted(name)} ? {_queue(name)} : '')"


def _by_group(group: Group) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for api_version, name in group.kinds:
        served = api_version.rpartition("/")[0] + "/"
        if name not in result.setdefault(served, []):
            result[served].append(name)
    return result


def resource_rules(
    items: Iterable[Group], operations: Sequence[str], part: str = ""
) -> list[JsonObject]:
    """The resources of these kinds, or a part of each, as policies and webhooks match them."""
    plurals: dict[tuple[str, str], set[str]] = {}
    for group in items:
        for api_version, name in group.kinds:
            resource = resource_of(api_version, name)
            place = plurals.setdefault((resource.group, resource.version), set())
            place.add(f"{resource.plural}{part}")
    return [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": sorted(names),
            "operations": list(operations),
        }
        for (group, version), names in sorted(plurals.items())
    ]


# What the policies do.


def _writing(groups: Sequence[Group]) -> JsonObject:
    possible = [group for group in groups if group.means.is_possible]
    return {
        "apiVersion": API_VERSION,
        "kind": _MUTATING,
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {"resourceRules": resource_rules(possible, ("CREATE", "UPDATE"))},
            "variables": _variables(),
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": f"variables.isQueued && {_is_of(group)} && "
                        f"!{_is_held(group.means, 'object')} && "
                        f"{_is_due(group.means)} ? {_apply(group.means)} : Object{{}}"
                    },
                }
                for group in possible
            ],
        },
    }


def _is_due(means: Means) -> str:
    """Whether the field can be set now: not where it would be too late to hold anything back."""
    created = "request.operation == 'CREATE'"
    if means is GATED:
        return created  # a gate cannot be added to an existing pod
    held = f"oldObject != null && {_is_held(means, 'oldObject')}"
    late = " || !variables.wasQueued" if means.works_late else ""
    return f"({created} || ({held}){late})"


def _apply(means: Means) -> str:
    """The field as an apply configuration, such as Object{spec: Object.spec{suspend: true}}."""
    value = json.dumps(means.value)
    if means is GATED:
        value = f"[Object.spec.schedulingGates{{name: {value}}}]"
    for depth in reversed(range(len(means.path))):
        kind = ".".join(("Object", *means.path[:depth]))
        value = f"{kind}{{{means.path[depth]}: {value}}}"
    return value


def _refusing(groups: Sequence[Group], kinds: Kinds) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": _VALIDATING,
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": resource_rules(groups, ("CREATE", "UPDATE"))},
            "variables": _variables(),
            "validations": [_validation(group, kinds) for group in groups],
        },
    }


def _validation(group: Group, kinds: Kinds) -> JsonObject:
    means = group.means
    fine = "variables.wasQueued"
    if means.is_possible:
        was_not = f"({fine} && !{_is_held(means, 'oldObject')})"
        fine = f"{_is_held(means, 'object')} || {was_not}"
    api_version, name = group.kinds[0]
    kind = kinds.of({"apiVersion": api_version, "kind": name})
    assert kind is not None, "groups are made of known kinds"
    message = advice(kind)
    if not means.is_possible and len(group.kinds) > 1:
        message = message.replace(f"a {name} cannot", "an object of this kind cannot")
    return {
        "expression": f"!variables.isQueued || !{_is_of(group)} || {fine}",
        "message": message,
        "reason": "Invalid",
    }


def _keeping_status(groups: Sequence[Group], hub: str, kind: str) -> JsonObject:
    """Reserves a status for the hub: other writes have no effect, or are refused on old servers."""
    possible = [group for group in groups if group.means.is_possible]
    held = [f"{_is_of(group)} && {_is_held(group.means, 'object')}" for group in possible]
    others = f"request.userInfo.username != {json.dumps(hub)}"
    spec: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": resource_rules(possible, ("UPDATE",), "/status")},
        "variables": _variables(),
        "matchConditions": [
            {"name": "others", "expression": others},
            # An object that existed before the policies is run by its own controller.
            {"name": "held", "expression": " || ".join(held)},
        ],
    }
    if kind == _MUTATING:
        put_back = "[JSONPatch{op: 'add', path: '/status', value: oldObject.status}]"
        removed = "(has(object.status) ? [JSONPatch{op: 'remove', path: '/status'}] : [])"
        mended = f"(has(oldObject.status) ? {put_back} : {removed})"
        expression = f"variables.isQueued ? {mended} : []"
        mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
        spec |= {"reinvocationPolicy": "IfNeeded", "mutations": [mutation]}
    else:
        message = "the status of an object with a queue is written by the hub alone"
        same = "!variables.isQueued || object.?status == oldObject.?status"
        spec["validations"] = [{"expression": same, "message": message, "reason": "Forbidden"}]
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": STATUS_NAME},
        "spec": spec,
    }
