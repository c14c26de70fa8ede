"""The roles of a manifest: the path of each, its template, and its pod count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.api.kindrule import PodSetRule
from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.kinds import pods
from fairway.kinds.plain import child, name_of, namespace_of
from fairway.kinds.rules.expressions import (
    COUNTED,
    POD_NAME,
    ROLE,
    Bindings,
    Compiler,
    RuleFault,
    number_of,
    text_of,
)
from fairway.kinds.rules.places import Keys, Path, show_place

_LABEL_LENGTH_MAX = 63
_COUNT_MAX = 10_000_000
# Fields that have the same name in a pod and in a partial template.
_OVERLAID = (
    "affinity",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "priorityClassName",
    "schedulerName",
    "serviceAccountName",
    "tolerations",
    "volumes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role of a manifest."""

    rule: CompiledRole
    name: str
    key: str
    keys: Keys  # its place
    value: Any
    count: int
    least: int | None
    times: int
    bindings: Mapping[str, Any]

    def template(self) -> JsonObject | None:
        """The pod template in the manifest itself; None if it has none."""
        result = self.rule.template.first(self.value)
        if not isinstance(result, dict):
            return None
        if not self.rule.is_inline:
            return result
        metadata = self.rule.metadata.first(result)
        return {"metadata": metadata if isinstance(metadata, dict) else {}, "spec": result}

    def pod(self) -> JsonObject:
        """The template that pods are made from; the rule's, if the manifest has none."""
        result = self.template()
        if result is not None and not self.rule.is_template_partial:
            return result
        made = self.rule.pod(self.bindings) if self.rule.pod else None
        whole = made if isinstance(made, dict) else {}
        return whole if result is None else _overlaid(whole, result)

    def pod_set(self) -> PodSet:
        pod = self.pod()
        made = pods.pod_set(
            self.name,
            pod,
            self.count,
            least_count=self.least,
            member_size=self.times if self.times > 1 else None,
        )
        if self.rule.shapes is None:
            return made
        shapes = self.rule.shapes.value(self.bindings)
        return _with_largest(made, [pods.pod_requests(shape) for shape in shapes])

    def restart_policy(self) -> str:
        """The restart policy that its controller writes into pods; empty if it writes none."""
        return text_of(self.rule.restart_policy, self.bindings)

    def retries(self) -> int | None:
        """How often a failed pod is recreated; None: without limit."""
        number = number_of(self.rule.retries, self.bindings)
        return None if number < 0 else number

    def pod_name(self, index: int) -> str:
        if self.rule.pod_name is None:
            return f"{self.bindings['name']}-{self.name}-{index}"
        bindings = {**self.bindings, "podSet": self.name, "index": index}
        return str(self.rule.pod_name.value(bindings))

    def write_count(self, manifest: JsonObject, count: int) -> None:
        """Writes another pod count into a copy of the manifest."""
        value = at(manifest, self.keys)
        if self.rule.count.steps and isinstance(value, dict):
            self.rule.count.write(value, count // self.times)


class CompiledRole:
    """A pod set rule, compiled."""

    def __init__(self, rule: PodSetRule, where: str, compiler: Compiler) -> None:
        self.rule = rule
        self.where = where
        self.at = compiler.path(rule.at, f"{where}.at")
        self.template = compiler.path(rule.template, f"{where}.template", single=True)
        self.metadata = compiler.path(rule.metadata, f"{where}.metadata", single=True)
        self.count = compiler.path(rule.count.path, f"{where}.count.path", single=True)
        self.otherwise = compiler.path(rule.count.otherwise, f"{where}.count.otherwise")
        self.times = compiler.path(rule.count.times, f"{where}.count.times")
        self.name_from = compiler.expression(rule.name_from, f"{where}.nameFrom", ROLE)
        self.when = compiler.expression(rule.when, f"{where}.when", ROLE)
        self.least = compiler.expression(rule.least, f"{where}.least", COUNTED)
        self.shapes = compiler.expression(rule.shapes, f"{where}.shapes", ROLE)
        self.retries = compiler.expression(rule.retries, f"{where}.retries", ROLE)
        self.restart_policy = compiler.expression(
            rule.restart_policy, f"{where}.restartPolicy", ROLE
        )
        self.pod_name = compiler.expression(rule.pod_name, f"{where}.podName", POD_NAME)
        self.pod = compiler.template(rule.pod, f"{where}.pod", ROLE) if rule.pod else None
        self.is_inline = rule.inline
        self.is_template_partial = rule.pod is not None and (rule.partial or rule.inline)

    def roles(self, manifest: JsonObject) -> Iterator[Role]:
        """The roles that this rule finds in a manifest."""
        places = self.at.places(manifest)
        rank = {key: place for place, key in enumerate(self.rule.order)}
        if rank:
            places.sort(key=lambda pair: (rank.get(str(pair[0][-1]), len(rank)), str(pair[0][-1])))
        for keys, value in places:
            key = str(keys[-1]) if keys else ""
            bindings = _bindings(manifest, value, key)
            if self.when is None or self.when.holds(bindings):
                yield self._role(keys, value, key, bindings)

    def _role(self, keys: Keys, value: Any, key: str, bindings: Mapping[str, Any]) -> Role:
        times = max(1, _number(self.times, value, 1)) if self.times.steps else 1
        number = _number(self.count, value, None) if self.count.steps else None
        if number is None and self.otherwise.steps:
            number = _number(self.otherwise, value, None)
        count = min(_COUNT_MAX, (self.rule.count.default if number is None else number) * times)
        result = self.least.found({**bindings, "count": count}) if self.least else None
        is_least = isinstance(result, int) and not isinstance(result, bool) and result < count
        least = max(0, result) if result is not None and is_least else None
        return Role(
            rule=self,
            name=self.rule.name or _label(self._name(bindings)),
            key=key,
            keys=keys,
            value=value,
            count=count,
            least=least,
            times=times,
            bindings=bindings,
        )

    def _name(self, bindings: Bindings) -> str:
        assert self.name_from is not None, "a rule without a name has an expression for it"
        return str(self.name_from.value(bindings))

    def make_template(self, manifest: JsonObject) -> None:
        """Creates the template in a copy of a manifest, for a decision to be written into."""
        if not self.rule.creates_template:
            return
        for role in self.roles(manifest):
            if self.is_template_partial:
                self.template.make(role.value)
                self.metadata.make(self.template.first(role.value))
            elif role.template() is None:
                self.template.write(role.value, role.pod())

    def faults(self, manifest: JsonObject) -> list[str]:
        """What is wrong with a manifest's roles."""
        places = self.at.places(manifest)
        if self.rule.required and not places:
            return [f"{self.rule.at}: is required"]
        faults = []
        for keys, value in places:
            place = show_place(keys)
            if not isinstance(value, dict):
                faults.append(f"{place}: must be a map")
                continue
            for path in (self.count, self.otherwise, self.times):
                number = path.first(value) if path.steps else None
                is_count = isinstance(number, int) and not isinstance(number, bool) and number >= 0
                if number is not None and not is_count:
                    faults.append(f"{place}.{path.text}: must be a whole number, zero or more")
        return faults


def roles_of(rules: tuple[CompiledRole, ...], manifest: JsonObject) -> list[Role]:
    """All roles of a manifest; RuleFault if two have the same name."""
    roles = [role for rule in rules for role in rule.roles(manifest)]
    names: dict[str, str] = {}
    for role in roles:
        if role.name in names:
            raise RuleFault(
                f"{show_place(role.keys)}: has the same name as {names[role.name]}: {role.name}"
            )
        names[role.name] = show_place(role.keys)
    return roles


def at(value: Any, keys: Keys) -> Any:
    for key in keys:
        value = value[key]
    return value


def _bindings(manifest: JsonObject, role: Any, key: str) -> Mapping[str, Any]:
    return {
        "object": manifest,
        "spec": child(manifest, "spec"),
        "metadata": child(manifest, "metadata"),
        "name": name_of(manifest),
        "namespaceName": namespace_of(manifest),
        "role": role,
        "key": key,
    }


def _overlaid(whole: JsonObject, part: JsonObject) -> JsonObject:
    """A pod with the metadata, node and volume fields of a partial template laid over it."""
    metadata = {
        field: {**child(whole, "metadata", field), **child(part, "metadata", field)}
        for field in ("labels", "annotations")
    }
    said = {key: value for key, value in child(part, "spec").items() if key in _OVERLAID}
    return {"metadata": metadata, "spec": {**child(whole, "spec"), **said}}


def _number(path: Path, value: Any, default: int | None) -> Any:
    result = path.first(value)
    is_number = isinstance(result, int) and not isinstance(result, bool) and result >= 0
    return result if is_number else default


def _label(text: str) -> str:
    """Turns text into a DNS label."""
    cleaned = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return cleaned[:_LABEL_LENGTH_MAX].strip("-") or "pods"


def _with_largest(made: PodSet, shapes: list[dict[str, Any]]) -> PodSet:
    largest = dict(made.requests)
    for shape in shapes:
        for resource, amount in shape.items():
            if resource not in largest or largest[resource].nanos < amount.nanos:
                largest[resource] = amount
    return msgspec.structs.replace(made, requests=largest)
