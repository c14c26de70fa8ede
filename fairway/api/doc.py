"""Descriptions, limits and rules of fields, declared beside their types.

    count: Annotated[int, doc("Number of pods.", minimum=0)] = 1

A deprecated field is marked there, too:

    pods: Annotated[int, doc("…", deprecated=Deprecated(since="0.2.0", use="spec.count"))] = 0

The description feeds the custom resource definitions, `kubectl explain` and the API reference. The
limits feed the schema only: objects are checked when they are written, by the schema, and read
without checks, so that an older reader accepts what a newer writer was allowed to write.
Rules between fields are CEL, declared with the type, so that a kube-apiserver enforces them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from msgspec import Meta

T = TypeVar("T")

RULES = "x-kubernetes-validations"

_KEYWORDS: Mapping[str, str] = {
    "minimum": "minimum",
    "maximum": "maximum",
    "pattern": "pattern",
    "format": "format",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "list_type": "x-kubernetes-list-type",
    "list_map_keys": "x-kubernetes-list-map-keys",
    "map_type": "x-kubernetes-map-type",
    "embedded": "x-kubernetes-embedded-resource",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule over `self`, and the message for a violation."""

    rule: str
    message: str
    field_path: str = ""

    def as_json(self) -> dict[str, str]:
        entry = {"rule": self.rule, "message": self.message}
        if self.field_path:
            entry["fieldPath"] = self.field_path
        return entry


# A deprecated field may only keep its value. This rule also identifies deprecated fields.
AS_BEFORE = "oldSelf.hasValue() && oldSelf.value() == self"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecated:
    """The version since which a field is deprecated, and what to use instead."""

    since: str
    use: str

    def as_json(self) -> dict[str, str | bool]:
        """The rule by which every server refuses new values and accepts existing ones."""
        message = f"deprecated since {self.since}; use {self.use} instead"
        return {"rule": AS_BEFORE, "message": message, "optionalOldSelf": True}


_RULES_BY_TYPE: dict[type, tuple[Rule, ...]] = {}


def rules(*declared: Rule) -> Callable[[type[T]], type[T]]:
    """Declares the rules between the fields of a type."""

    def declare(kind: type[T]) -> type[T]:
        _RULES_BY_TYPE[kind] = declared
        return kind

    return declare


def rules_of(kind: type) -> tuple[Rule, ...]:
    """The rules declared with a type."""
    return _RULES_BY_TYPE.get(kind, ())


def limits(**keywords: str | float | bool | Sequence[str]) -> Meta:
    """Limits of a value; for aliases, to which the field adds the description."""
    return Meta(extra_json_schema={_KEYWORDS[key]: value for key, value in keywords.items()})


def doc(
    text: str,
    *,
    deprecated: Deprecated | None = None,
    **keywords: str | float | bool | Sequence[str],
) -> Meta:
    """The description of a field, with its own limits."""
    schema: dict[str, object] = {_KEYWORDS[key]: value for key, value in keywords.items()}
    if deprecated is not None:
        text = f"{text} Deprecated since {deprecated.since}: use {deprecated.use} instead."
        schema[RULES] = [deprecated.as_json()]
    return Meta(description=text, extra_json_schema=schema or None)


_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_NAME = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

# The name of an object: required, and a DNS subdomain.
Name = Annotated[str, limits(pattern=f"^{_DNS_NAME}$", min_length=1, max_length=253)]
# The name of another object; empty means none.
Reference = Annotated[str, limits(pattern=f"^({_DNS_NAME})?$", max_length=253)]
# The name of a part inside an object: a DNS label.
Label = Annotated[str, limits(pattern=f"^{_DNS_LABEL}$", min_length=1, max_length=63)]
OptionalLabel = Annotated[str, limits(pattern=f"^({_DNS_LABEL})?$", max_length=63)]
# The key of a label, annotation, taint or claim; also the name of a resource.
Key = Annotated[
    str,
    limits(
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        min_length=1,
        max_length=316,
    ),
]
ResourceName = Annotated[
    str,
    limits(
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        min_length=1,
        max_length=128,
    ),
]
LabelValue = Annotated[
    str, limits(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)
]
# A machine-readable word, as in conditions.
Code = Annotated[str, limits(pattern=r"^([A-Za-z][A-Za-z0-9]*)?$", max_length=64)]
Text = Annotated[str, limits(max_length=1024)]
# A CEL expression of a user.
Expression = Annotated[str, limits(min_length=1, max_length=2048)]
# A CEL expression over `cluster`; a hub checks it when it is written, whatever store it has.
CLUSTER_EXPRESSION = "cel-of-cluster"
ClusterExpression = Annotated[str, limits(min_length=1, max_length=2048, format=CLUSTER_EXPRESSION)]
# Ten years bound every duration, so that sums stay far from any overflow.
SECONDS_MAX = 315_360_000
Seconds = Annotated[int, limits(minimum=0, maximum=SECONDS_MAX)]
Count = Annotated[int, limits(minimum=0, maximum=10_000_000)]
Priority = Annotated[int, limits(minimum=-2_147_483_648, maximum=2_147_483_647)]
