"""The Kind of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fairway.api.equality import same
from fairway.api.kindrule import KindRule, StatusRule
from fairway.api.meta import JsonObject, ObjectReference
from fairway.api.podset import PodSet
from fairway.kinds import dependencies, pods
from fairway.kinds.interface import Announcement, Mode, Observed, Phase, Pod, PodState
from fairway.kinds.plain import child, copy_of, maps_at, number, text
from fairway.kinds.rules.expressions import (
    ROLE,
    STATUS,
    Bindings,
    Compiler,
    RuleFault,
    number_of,
    text_of,
)
from fairway.kinds.rules.places import show_place
from fairway.kinds.rules.played_status import CompiledPlay
from fairway.kinds.rules.pods import CompiledPods
from fairway.kinds.rules.roles import CompiledRole, Role, roles_of

_REPLICAS = "replicas"
# Of the phases in several clusters, the one furthest from success counts.
_WORST_FIRST: tuple[Phase, ...] = ("Failed", "Pending", "Suspended", "Running", "Succeeded")


class RuleKind:
    """A native kind described by a rule; `load.kind_of` makes one from a checked rule."""

    def __init__(self, rule: KindRule, compiler: Compiler) -> None:
        spec = rule.spec
        self.rule = rule
        self._spec = spec
        self._roles = tuple(
            CompiledRole(pod_set, f"spec.podSets[{index}]", compiler)
            for index, pod_set in enumerate(spec.pod_sets)
        )
        self._pods = CompiledPods(spec, compiler)
        self._play = CompiledPlay(spec.play, compiler)
        self._status = _CompiledStatus(spec.status, compiler)
        path = spec.replicas.path if spec.replicas else ""
        self._replicas = compiler.path(path, "spec.replicas.path", single=True)
        self._dependencies = [
            (dependency, compiler.path(dependency.path, f"spec.dependencies[{index}].path"))
            for index, dependency in enumerate(spec.dependencies)
        ]
        self._faults = [
            (fault, compiler.expression(fault.when, f"spec.faults[{index}].when", ROLE))
            for index, fault in enumerate(spec.faults)
        ]

    @property
    def api_versions(self) -> tuple[str, ...]:
        return self._spec.api_versions

    @property
    def name(self) -> str:
        return self._spec.kind

    def faults(self, manifest: JsonObject) -> list[str]:
        result = [fault for rule in self._roles for fault in rule.faults(manifest)]
        if result:
            return result
        bindings = _whole(manifest)
        for rule, when in self._faults:
            if when and when.holds(bindings):
                result.append(f"{rule.path}: {rule.message}")
        if result:
            return result
        try:
            roles = roles_of(self._roles, manifest)
            if not roles:
                result.append(f"{self._spec.pod_sets[0].at or 'spec'}: has no pods")
            for role in roles:
                result += _template_faults(role)
                role.pod_set()
            # Values that expressions can't handle show in the first pod of each set.
            list(self._pods.make(roles, of_each_at_most=1))
        except RuleFault as fault:
            result.append(str(fault))
        return result

    def mode(self, manifest: JsonObject) -> Mode:
        return self._spec.mode

    def replicas(self, manifest: JsonObject) -> int | None:
        if self._spec.replicas is None:
            return None
        result = self._replicas.first(manifest)
        is_number = isinstance(result, int) and not isinstance(result, bool) and result >= 0
        return result if is_number else self._spec.replicas.default

    def pod_sets(self, manifest: JsonObject) -> tuple[PodSet, ...]:
        with suppress(RuleFault):
            return tuple(role.pod_set() for role in self._roles_of(manifest))
        return ()

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        result = {role.name: role.template() for role in self._roles_of(manifest)}
        return {name: template for name, template in result.items() if template is not None}

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        made = copy_of(manifest)
        if _REPLICAS in counts and self._spec.replicas is not None:
            self._replicas.write(made, counts[_REPLICAS])
        for role in self._roles_of(manifest):
            if role.name in counts and counts[role.name] != role.count:
                role.write_count(made, counts[role.name])
        with suppress(RuleFault):
            for rule in self._roles:
                rule.make_template(made)
        return made

    def is_held(self, manifest: JsonObject) -> bool:
        return self._spec.hold is not None and _has(manifest, self._spec.hold.held)

    def hold(self, manifest: JsonObject) -> JsonObject:
        made = copy_of(manifest)
        return made if self._spec.hold is None else _patch(made, self._spec.hold.held)

    def release(self, manifest: JsonObject) -> JsonObject:
        made = copy_of(manifest)
        if self._spec.hold is None or not self.is_held(manifest):
            return made
        return _patch(made, self._spec.hold.released)

    def pods(self, manifest: JsonObject) -> Sequence[Pod]:
        if self.is_held(manifest):
            return ()
        roles = self._roles_of(manifest)
        copies = self.replicas(manifest)
        made: list[Pod] = []
        with suppress(RuleFault):
            made = list(self._pods.make(roles))
        if copies is None:
            return made
        counts = {role.name: role.count for role in roles}
        return [_of_copy(pod, number, per_copy=counts) for number in range(copies) for pod in made]

    def play(self, manifest: JsonObject, pods: Sequence[PodState], *, now: float) -> JsonObject:
        roles = self._roles_of(manifest)
        copies = self.replicas(manifest)
        with suppress(RuleFault):
            return self._play.status(
                manifest,
                roles,
                pods,
                is_held=self.is_held(manifest),
                replicas=1 if copies is None else copies,
                now=now,
            )
        return {}

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        copies = self.replicas(manifest)
        with suppress(RuleFault):
            return self._play.status(
                manifest,
                self._roles_of(manifest),
                (),
                is_held=False,
                replicas=1 if copies is None else copies,
                now=said.at,
                said=said,
            )
        return {}

    def read(self, body: JsonObject) -> Observed:
        copies = self.replicas(body)
        return self._status.read(body, self._counts(body), replicas=1 if copies is None else copies)

    def merge(self, manifest: JsonObject, statuses: Mapping[str, JsonObject]) -> JsonObject:
        if not statuses:
            return {}
        order = sorted(
            statuses,
            key=lambda name: (
                _WORST_FIRST.index(self.read({**manifest, "status": statuses[name]}).phase),
                name,
            ),
        )
        made = copy_of(statuses[order[0]])
        if len(statuses) > 1:
            for path in self._status.sums:
                numbers = [path.first(status) for status in statuses.values()]
                given = [number for number in numbers if isinstance(number, int)]
                if given:
                    path.write(made, sum(given))
        return made

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        references: set[ObjectReference] = set()
        with suppress(RuleFault):
            roles = self._roles_of(manifest)
            references.update(dependencies.of_templates([role.pod() for role in roles]))
        for rule, path in self._dependencies:
            for name in path.values(manifest):
                if isinstance(name, str):
                    reference = ObjectReference(
                        api_version=rule.api_version, kind=rule.kind, name=name
                    )
                    references.add(reference)
        return dependencies.in_order(references)

    def _roles_of(self, manifest: JsonObject) -> list[Role]:
        """The roles; none if there is a fault, which `faults` reports."""
        with suppress(RuleFault):
            return roles_of(self._roles, manifest)
        return []

    def _counts(self, manifest: JsonObject) -> dict[str, int]:
        return {role.name: role.count for role in self._roles_of(manifest)}


class _CompiledStatus:
    """The status part of a rule, compiled."""

    def __init__(self, rule: StatusRule, compiler: Compiler) -> None:
        where = "spec.status"
        self._phases = [
            (
                phase.phase,
                compiler.expression(phase.when, f"{where}.phases[{index}].when", STATUS),
                compiler.expression(phase.reason, f"{where}.phases[{index}].reason", STATUS),
                compiler.expression(phase.message, f"{where}.phases[{index}].message", STATUS),
            )
            for index, phase in enumerate(rule.phases)
        ]
        self._ready = compiler.expression(rule.ready, f"{where}.ready", STATUS)
        self._succeeded = compiler.expression(rule.succeeded, f"{where}.succeeded", STATUS)
        self._failed = compiler.expression(rule.failed, f"{where}.failed", STATUS)
        self._progress = compiler.expression(rule.progress, f"{where}.progress", STATUS)
        self._healthy = compiler.expression(rule.healthy, f"{where}.healthy", STATUS)
        self._current = compiler.expression(rule.current, f"{where}.current", STATUS)
        self.sums = [
            compiler.path(total, f"{where}.sums[{index}]", single=True)
            for index, total in enumerate(rule.sums)
        ]

    def read(self, body: JsonObject, counts: Mapping[str, int], *, replicas: int) -> Observed:
        status = child(body, "status")
        conditions = {
            text(condition, "type"): condition for condition in maps_at(status, "conditions")
        }
        bindings: dict[str, Any] = {
            "object": body,
            "spec": child(body, "spec"),
            "metadata": child(body, "metadata"),
            "status": status,
            "conditions": conditions,
            "holding": {
                name: {"reason": "", "message": "", **condition}
                for name, condition in conditions.items()
                if condition.get("status") == "True"
            },
            "counts": counts,
            "total": sum(counts.values()),
            "replicas": replicas,
        }
        phase, reason, message = self._phase(bindings)
        healthy = self._healthy.found(bindings) if self._healthy else None
        return Observed(
            phase=phase,
            reason=reason,
            message=message,
            ready=max(0, number_of(self._ready, bindings)),
            succeeded=max(0, number_of(self._succeeded, bindings)),
            failed=max(0, number_of(self._failed, bindings)),
            progress=text_of(self._progress, bindings),
            is_healthy=healthy if isinstance(healthy, bool) else None,
            is_current=self._is_current(body, status, bindings),
        )

    def _phase(self, bindings: Bindings) -> tuple[Phase, str, str]:
        for phase, when, reason, message in self._phases:
            if when and when.holds(bindings):
                return phase, text_of(reason, bindings), text_of(message, bindings)
        return "Pending", "", ""

    def _is_current(self, body: JsonObject, status: JsonObject, bindings: Bindings) -> bool:
        if self._current:
            return self._current.holds(bindings)
        observed = number(status, "observedGeneration", default=-1)
        return observed < 0 or observed >= number(body, "metadata", "generation")


def _template_faults(role: Role) -> list[str]:
    """Faults of the template in the manifest, if pods are made from it."""
    if role.rule.is_template_partial:
        return []
    template_faults = role.template()
    place = ".".join(part for part in (show_place(role.keys), role.rule.template.text) if part)
    if template_faults is None:
        return [] if role.rule.pod else [f"{place}: is required"]
    return pods.template_faults(template_faults, place)


def _whole(manifest: JsonObject) -> Bindings:
    return {
        "object": manifest,
        "spec": child(manifest, "spec"),
        "metadata": child(manifest, "metadata"),
        "name": text(manifest, "metadata", "name"),
        "namespaceName": text(manifest, "metadata", "namespace", default="default"),
        "role": manifest,
        "key": "",
    }


def _of_copy(pod: Pod, copy_number: int, *, per_copy: Mapping[str, int]) -> Pod:
    """A pod of one of several copies; pods of a set are numbered across all copies."""
    index = copy_number * per_copy[pod.pod_set] + pod.index
    stem, dash, last = pod.name.rpartition("-")
    name = f"{stem}{dash}{index}" if last.isdecimal() else f"{pod.name}-{index}"
    return replace(pod, name=name, index=index, spec=copy_of(pod.spec))


def _has(value: Any, part: Any) -> bool:
    """Whether a value contains all of `part`."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(
            key in value and _has(value[key], other) for key, other in part.items()
        )
    return same(value, part)


def _patch(value: JsonObject, patch: JsonObject) -> JsonObject:
    """Applies a JSON merge patch in place."""
    for key, other in patch.items():
        if other is None:
            value.pop(key, None)
        elif isinstance(other, dict):
            inner = value.get(key)
            value[key] = _patch(inner if isinstance(inner, dict) else {}, other)
        else:
            value[key] = copy_of(other)
    return value
