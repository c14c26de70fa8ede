"""Devices that pods ask for through resource claims, counted by device class.

A pod names claims in `spec.resourceClaims`: a ResourceClaimTemplate, from which each pod gets a
claim of its own, or a ResourceClaim. Each request of a claim names a device class and how many
devices of it. Kubernetes has a name for that as a resource,
`deviceclass.resource.kubernetes.io/CLASS`, and devices are counted by it here.

A request may list alternatives (`firstAvailable`). Each combination of alternatives is a way to run
the pods. Before a work is sent, its claims are pinned to the chosen way, so that the cluster's
scheduler allocates what was charged.

What cannot be counted exactly is a fault, with the field's path: all devices of a node
(`allocationMode: All`), access to devices of others (`adminAccess`), a part of a device
(`capacity`), a claim that several pods share, and a claim that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product

import msgspec

from fairway.api.amounts import DEVICE_CLASS_PREFIX, NANO, Quantity, family_of
from fairway.api.meta import JsonObject
from fairway.kinds.interface import Kind
from fairway.kinds.plain import child, copy_of, maps_at, name_of, number, text

GROUP = "resource.k8s.io"
API_VERSION = f"{GROUP}/v1"
TEMPLATE, CLAIM = "ResourceClaimTemplate", "ResourceClaim"
_VERSIONS = (API_VERSION, f"{GROUP}/v1beta2")  # of the same form
_WAYS_MOST = 8
_NAME_MOST = 253
_DIGEST_LENGTH = 8
_WAY_NAME = "device-choice-"

ClaimName = tuple[str, str]  # kind and name, in the namespace of the pods
Claims = Mapping[ClaimName, JsonObject]
Point = tuple[str, str, str]  # kind and name of a claim, and one of its requests
ByClass = dict[str, int]  # devices by class


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One choice among the alternatives of all requests."""

    devices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # pod set -> {device class: devices of one pod}
    picks: Mapping[Point, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The devices of the pods of a manifest: the ways to run them, the preferred first."""

    ways: tuple[Way, ...] = (Way(),)
    faults: tuple[str, ...] = ()


NO_DEVICES = Counted()


def class_resource(device_class: str) -> str:
    """The resource by which devices of a class are counted."""
    return f"{DEVICE_CLASS_PREFIX}{device_class}"


def is_claim(manifest: Mapping[str, object]) -> bool:
    """Whether an object is a claim, or a template of claims, in any version."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return group == GROUP and manifest.get("kind") in (TEMPLATE, CLAIM)


def claims_among(manifests: Iterable[JsonObject]) -> dict[ClaimName, JsonObject]:
    """The claims and templates among manifests."""
    return {
        (str(manifest.get("kind")), name_of(manifest)): manifest
        for manifest in manifests
        if is_claim(manifest)
    }


def requests_of(devices: Mapping[str, int]) -> dict[str, Quantity]:
    """Devices by class, as requested resources."""
    return {
        class_resource(name): Quantity(count * NANO, family_of(class_resource(name)))
        for name, count in sorted(devices.items())
        if count
    }


def with_devices(
    requests: Mapping[str, Quantity], devices: Mapping[str, int]
) -> dict[str, Quantity]:
    """Requests of a pod, with its devices by class."""
    result = dict(requests)
    for name, amount in requests_of(devices).items():
        result[name] = result[name].plus(amount) if name in result else amount
    return result


def count_devices(
    manifest: JsonObject, kind: Kind | None, claims: Claims, pods: Mapping[str, int] | None = None
) -> Counted:
    """The devices that the pods of a manifest ask for.

    `pods` is how many pods of each set run at a time; if given, claims that pods share are faults.
    """
    templates = kind.templates(manifest) if kind is not None else {}
    asking = {
        name: maps_at(template, "spec", "resourceClaims") for name, template in templates.items()
    }
    if not any(asking.values()):
        return NO_DEVICES
    counting = _Counting(claims)
    for name, entries in asking.items():
        for position, entry in enumerate(entries):
            path = f"pod set {name}: spec.resourceClaims[{position}]"
            counting.add(name.partition("/")[0], name, entry, path)
    if pods is not None:
        counting.check_sharing(pods)
    return counting.result()


class _Counting:
    """Counts the claims of the templates of one manifest."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._faults: list[str] = []
        # By template of pods: the claims that its pods have.
        self._used: dict[str, list[ClaimName]] = {}
        self._pod_sets: dict[str, str] = {}
        self._named: dict[str, dict[str, str]] = {}  # claim -> {pod set: path}
        self._options: dict[ClaimName, dict[str, list[ByClass]]] = {}

    def add(self, pod_set: str, template: str, entry: JsonObject, path: str) -> None:
        name = text(entry, "resourceClaimTemplateName")
        kind, where = TEMPLATE, f"{path}.resourceClaimTemplateName"
        if not name:
            name = text(entry, "resourceClaimName")
            kind, where = CLAIM, f"{path}.resourceClaimName"
            self._named.setdefault(name, {})[pod_set] = where
        claim = self._claims.get((kind, name))
        if not name:
            self._faults.append(f"{path}: name a resourceClaimTemplateName or a resourceClaimName")
        elif claim is None:
            self._faults.append(f"{where}: the hub has no {kind} {name} in the namespace")
        else:
            self._pod_sets[template] = pod_set
            self._used.setdefault(template, []).append((kind, name))
            if (kind, name) not in self._options:
                self._options[kind, name] = self._read(claim, kind, name)

    def _read(self, claim: JsonObject, kind: str, name: str) -> dict[str, list[ByClass]]:
        """The alternatives of each request of a claim."""
        what = f"{kind} {name}"
        if claim.get("apiVersion") not in _VERSIONS:
            self._faults.append(f"{what}: apiVersion: write it as {API_VERSION}")
            return {}
        inner = ("spec", "spec") if kind == TEMPLATE else ("spec",)
        options: dict[str, list[ByClass]] = {}
        for position, request in enumerate(maps_at(claim, *inner, "devices", "requests")):
            path = f"{what}: {'.'.join(inner)}.devices.requests[{position}]"
            several = maps_at(request, "firstAvailable")
            if several:
                parts = [
                    self._request(part, f"{path}.firstAvailable[{at}]")
                    for at, part in enumerate(several)
                ]
            else:
                if not child(request, "exactly"):
                    self._faults.append(f"{path}: neither exactly nor firstAvailable is set")
                parts = [self._request(child(request, "exactly"), f"{path}.exactly")]
            options[text(request, "name")] = parts
        return options

    def _request(self, request: JsonObject, path: str) -> ByClass:
        fault = ""
        if request.get("allocationMode") == "All":
            fault = f"{path}.allocationMode: All takes what a node has; ask for a count"
        elif request.get("adminAccess") is True:
            fault = f"{path}.adminAccess: access to devices of others is not allowed in a workload"
        elif child(request, "capacity", "requests"):
            fault = f"{path}.capacity: a part of a device cannot be counted; ask for whole devices"
        elif request and not text(request, "deviceClassName"):
            fault = f"{path}.deviceClassName: name a device class"
        if fault:
            self._faults.append(fault)
            return {}
        return {text(request, "deviceClassName"): max(1, number(request, "count", default=1))}

    def check_sharing(self, pods: Mapping[str, int]) -> None:
        for name, paths in self._named.items():
            sharing = sum(pods.get(pod_set, 1) for pod_set in paths)
            if sharing > 1:
                self._faults.append(
                    f"{next(iter(paths.values()))}: {sharing} pods share ResourceClaim {name}; use "
                    "a ResourceClaimTemplate, which gives each pod devices of its own"
                )

    def result(self) -> Counted:
        points = {
            (kind, name, request): len(parts)
            for (kind, name), requests in self._options.items()
            for request, parts in requests.items()
            if len(parts) > 1
        }
        ways = 1
        for options in points.values():
            ways *= options
        if ways > _WAYS_MOST:
            self._faults.append(
                f"firstAvailable: {ways} combinations of alternatives, at most {_WAYS_MOST} are "
                "tried"
            )
        if self._faults:
            return Counted(faults=tuple(dict.fromkeys(self._faults)))
        choices = product(*(range(options) for options in points.values()))
        return Counted(
            ways=tuple(self._way(dict(zip(points, each, strict=True))) for each in choices)
        )

    def _way(self, picks: Mapping[Point, int]) -> Way:
        devices: dict[str, ByClass] = {}
        for template, used in self._used.items():
            mine: ByClass = {}
            for kind, name in used:
                for request, parts in self._options[kind, name].items():
                    for device_class, count in parts[picks.get((kind, name, request), 0)].items():
                        mine[device_class] = mine.get(device_class, 0) + count
            into = devices.setdefault(self._pod_sets[template], {})
            for device_class, count in mine.items():
                # Of the templates of one pod set, that which asks for most counts.
                into[device_class] = max(count, into.get(device_class, 0))
        return Way(devices=devices, picks=picks)


def way_name(number: int) -> str:
    """The name of a way, as the form that a claim names; the first has none."""
    return f"{_WAY_NAME}{number + 1}" if number else ""


def chosen_way(counted: Counted, form: str) -> Way:
    """The way that a form stands for."""
    number = form.removeprefix(_WAY_NAME)
    if form == number or not number.isdecimal() or not 0 < int(number) <= len(counted.ways):
        return counted.ways[0]
    return counted.ways[int(number) - 1]


# What is sent to a cluster.


def pin_claims(
    manifests: Sequence[JsonObject], way: Way
) -> tuple[list[JsonObject], dict[ClaimName, str]]:
    """The manifests with the alternatives of one way only, and the new names of changed claims.

    A claim cannot be changed once it exists, and another workload may have chosen otherwise. So a
    pinned claim has a name by its content.
    """
    result: list[JsonObject] = []
    names: dict[ClaimName, str] = {}
    for manifest in manifests:
        kind, name = str(manifest.get("kind")), name_of(manifest)
        picks = {
            request: pick
            for (of, named, request), pick in way.picks.items()
            if (of, named) == (kind, name)
        }
        if not picks or not is_claim(manifest):
            result.append(manifest)
            continue
        pinned = copy_of(manifest)
        spec = child(pinned, "spec", "spec") if kind == TEMPLATE else child(pinned, "spec")
        _pin(child(spec, "devices"), picks)
        digest = sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:_DIGEST_LENGTH]
        new = f"{name[: _NAME_MOST - _DIGEST_LENGTH - 1]}-{digest}"
        pinned["metadata"] = {**child(pinned, "metadata"), "name": new}
        names[kind, name] = new
        result.append(pinned)
    return result, names


def _pin(devices: JsonObject, picks: Mapping[str, int]) -> None:
    """Replaces alternatives by the one that was picked, in requests and in what refers to them."""
    kept: dict[str, str] = {}  # request/alternative -> request
    for request in maps_at(devices, "requests"):
        name = text(request, "name")
        if name in picks:
            chosen = dict(maps_at(request, "firstAvailable")[picks[name]])
            kept[f"{name}/{chosen.pop('name', '')}"] = name
            request.pop("firstAvailable")
            request["exactly"] = chosen
    for part in ("constraints", "config"):
        if part in devices:
            entries = [_about(entry, kept) for entry in maps_at(devices, part)]
            devices[part] = [entry for entry in entries if entry is not None]


def _about(entry: JsonObject, kept: Mapping[str, str]) -> JsonObject | None:
    """A constraint or configuration of requests; None if it is of alternatives not picked."""
    named = entry.get("requests")
    if not isinstance(named, list) or not named:
        return entry
    left = [kept.get(item, item) for item in named if "/" not in item or item in kept]
    return {**entry, "requests": left} if left else None


def rename_claims(
    kind: Kind | None, manifest: JsonObject, names: Mapping[ClaimName, str]
) -> JsonObject:
    """The manifest whose pods refer to claims by their new names."""
    if not names or kind is None:
        return manifest
    renamed = copy_of(manifest)
    for template in kind.templates(renamed).values():
        for entry in maps_at(template, "spec", "resourceClaims"):
            for of, key in ((TEMPLATE, "resourceClaimTemplateName"), (CLAIM, "resourceClaimName")):
                if (of, entry.get(key)) in names:
                    entry[key] = names[of, entry[key]]
    return renamed


def devices_of_work(
    manifests: Sequence[JsonObject], find_kind: Callable[[JsonObject], Kind | None]
) -> dict[str, Mapping[str, int]]:
    """Devices by pod set and class of the manifests of a work, whose claims are pinned."""
    claims = claims_among(manifests)
    if not claims:
        return {}
    devices: dict[str, Mapping[str, int]] = {}
    for manifest in manifests:
        devices.update(count_devices(manifest, find_kind(manifest), claims).ways[0].devices)
    return devices
