"""The pods that a kind's own controller would make, with what it adds to each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from fairway.api.kindrule import EnvironmentRule, FileRule, KindRuleSpec
from fairway.api.meta import JsonObject
from fairway.kinds.interface import Pod
from fairway.kinds.plain import child, texts
from fairway.kinds.pods import with_environment
from fairway.kinds.rules.expressions import POD, Bindings, Compiler, RuleFault, text_of
from fairway.kinds.rules.roles import Role
from fairway.schema.cel.environment import Scope

# Files that a controller would mount, as JSON by path; a driver without volumes may write them.
FILES_ANNOTATION = "fairway.dev/files"
# Why the pods alone are not enough; a driver that really runs pods should refuse them.
NEEDS_CONTROLLER_ANNOTATION = "fairway.dev/needs-controller"


class CompiledPods:
    """The pod part of a rule, compiled."""

    def __init__(self, spec: KindRuleSpec, compiler: Compiler) -> None:
        self._needs_controller = spec.needs_controller
        self._environment = [
            _Variable(rule, f"spec.environment[{index}]", compiler)
            for index, rule in enumerate(spec.environment)
        ]
        self._files = [
            _File(rule, f"spec.files[{index}]", compiler) for index, rule in enumerate(spec.files)
        ]
        self._subdomain = compiler.expression(spec.subdomain, "spec.subdomain", POD)
        self._labels = {
            key: compiler.expression(text, f"spec.labels[{key}]", POD)
            for key, text in spec.labels.items()
        }

    def make(self, roles: Sequence[Role], *, of_each_at_most: int | None = None) -> Iterator[Pod]:
        """The pods of all roles in order; at most `of_each_at_most` of each role, if given."""
        names = {role.name: [role.pod_name(index) for index in range(role.count)] for role in roles}
        counts = {role.name: role.count for role in roles}
        shared = {"counts": counts, "total": sum(counts.values()), "podNames": names}
        rank = 0
        for role in roles:
            template = role.pod()
            made = role.count if of_each_at_most is None else min(role.count, of_each_at_most)
            for index in range(made):
                name = names[role.name][index]
                bindings = {
                    **role.bindings,
                    **shared,
                    "podSet": role.name,
                    "podName": name,
                    "index": index,
                    "count": role.count,
                    "rank": rank + index,
                }
                # Bound once for all expressions of a pod: binding many pod names is expensive.
                yield self._pod(role, template, Scope(POD, bindings), name=name, index=index)
            rank += role.count

    def _pod(
        self, role: Role, template: JsonObject, bindings: Scope, *, name: str, index: int
    ) -> Pod:
        variables: dict[str, str] = {}
        for variable in self._environment:
            text = variable.text(bindings) if variable.is_for(role.name) else None
            if text is not None:
                variables[variable.name] = text
        labels = texts(template, "metadata", "labels")
        for key, expression in self._labels.items():
            result = expression.value(bindings) if expression else None
            if result is not None:
                labels[key] = str(result)
        annotations = texts(template, "metadata", "annotations")
        files = {file.path: file.text(bindings) for file in self._files if file.is_for(role.name)}
        if files:
            annotations[FILES_ANNOTATION] = _as_json(files)
        if self._needs_controller:
            annotations[NEEDS_CONTROLLER_ANNOTATION] = self._needs_controller
        spec = with_environment(child(template, "spec"), variables)
        if role.restart_policy():
            spec["restartPolicy"] = role.restart_policy()
        subdomain = text_of(self._subdomain, bindings)
        if subdomain:
            spec = {**spec, "hostname": name, "subdomain": subdomain}
        return Pod(
            name=name,
            pod_set=role.name,
            index=index,
            spec=spec,
            labels=labels,
            annotations=annotations,
            retries=role.retries(),
        )


def _as_json(value: Any) -> str:
    """JSON with sorted keys, so that the same pod gives the same text in every process."""
    return msgspec.json.encode(value, order="sorted").decode()


class _Variable:
    def __init__(self, rule: EnvironmentRule, where: str, compiler: Compiler) -> None:
        self.name = rule.name
        self._where = where
        self._pod_sets = rule.pod_sets
        self._when = compiler.expression(rule.when, f"{where}.when", POD)
        self._value = compiler.expression(rule.value, f"{where}.value", POD)
        self._json = compiler.template(rule.json, f"{where}.json", POD) if rule.json else None

    def is_for(self, pod_set: str) -> bool:
        return not self._pod_sets or pod_set in self._pod_sets

    def text(self, bindings: Bindings) -> str | None:
        """The value in a pod; None if the pod does not get the variable."""
        if self._when and not self._when.holds(bindings):
            return None
        if self._json:
            return _as_json(self._json(bindings))
        result = self._value.value(bindings) if self._value else ""
        if not isinstance(result, str):
            raise RuleFault(f"{self._where}.value: must be a text; write string(...) around it")
        return result


class _File:
    def __init__(self, rule: FileRule, where: str, compiler: Compiler) -> None:
        self.path = rule.path
        self._pod_sets = rule.pod_sets
        self._content = compiler.expression(rule.content, f"{where}.content", POD)

    def is_for(self, pod_set: str) -> bool:
        return not self._pod_sets or pod_set in self._pod_sets

    def text(self, bindings: Bindings) -> str:
        return str(self._content.value(bindings)) if self._content else ""
