"""Custom definitions with any schema: one that is served can hold objects; any other is refused,
and told why."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.resources.custom import custom_resources
from fairway.schema.node import JsonObject
from tests.fuzz import promises, shapes
from tests.fuzz.budget import budget
from tests.fuzz.driver import Driver

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "fishes.fuzz.example"
PATTERNS = [
    "^a+$",
    "(",
    "[",
    "(a+)+$",
    "(?=a)",
    "\\1",
    "(?P<x>a)",
    "\\p{Greek}",
    "a{1001}",
    "",
    "[[:alpha:]]",
]
RULES = [
    "self == self",
    "true",
    "false",
    "1",
    "self.a",
    "self.size() < 3",
    "self.all(x, x > 0)",
    "oldSelf == self",
    "self +",
    "nope",
    "has(self.a) && self.a == 1",
    "1 / 0 == 1",
    "self.matches('(')",
    "self.map(x, x).map(x, x)",
    "quantity('1') == quantity('x')",
    "dyn(self) == 1",
    "size(self) > 18446744073709551616",
    "'\u2028' in self",
    "(" * 200 + "true" + ")" * 200,
    "true || " * 500 + "true",
]
rules = st.lists(
    st.one_of(
        shapes.values,
        st.fixed_dictionaries(
            {"rule": st.sampled_from(RULES)},
            optional={
                "message": shapes.texts,
                "messageExpression": st.sampled_from(
                    ["'a' + 'b'", "self", "1", "(", "string(self)"]
                ),
                "reason": st.sampled_from(["FieldValueInvalid", "FieldValueForbidden", "Burn"]),
                "fieldPath": st.sampled_from([".a", "a", ".b.c", "", ".a[0]", ".['a']", "("]),
                "optionalOldSelf": st.booleans(),
            },
        ),
    ),
    max_size=2,
)
LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "pattern": st.one_of(st.sampled_from(PATTERNS), shapes.texts),
    "format": st.sampled_from(["date-time", "int32", "int64", "byte", "uuid", "ipv4", "burn", ""]),
    "enum": st.lists(shapes.values, max_size=3),
    "default": shapes.values,
    "nullable": st.booleans(),
    "minimum": shapes.scalars,
    "maximum": st.sampled_from(shapes.ODD_NUMBERS),
    "multipleOf": st.sampled_from([0, 1, 0.1, -1, 1e-300]),
    "minLength": st.sampled_from([0, 1, -1, 2**63]),
    "maxLength": st.sampled_from([0, 1, -1, 2**63]),
    "maxItems": st.sampled_from([0, 1, -1]),
    "uniqueItems": st.booleans(),
    "minProperties": st.sampled_from([0, 1, -1]),
    "required": st.lists(st.sampled_from(["a", "b", "", "é"]), max_size=2),
    "x-kubernetes-validations": rules,
    "x-kubernetes-preserve-unknown-fields": st.booleans(),
    "x-kubernetes-int-or-string": st.booleans(),
    "x-kubernetes-embedded-resource": st.booleans(),
    "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic", "burn"]),
    "x-kubernetes-list-map-keys": st.lists(st.sampled_from(["a", "b"]), max_size=2),
    "x-kubernetes-map-type": st.sampled_from(["atomic", "granular", "burn"]),
    "$ref": st.just("#/definitions/x"),
    "allOf": st.lists(st.just({"required": ["a"]}), max_size=1),
    "anyOf": st.lists(st.sampled_from([{"minimum": 1}, {"type": "string"}, {}, 1]), max_size=2),
    "not": st.sampled_from([{"minimum": 1}, {}, 1]),
    "junk": shapes.values,
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 0) -> Any:
    """A schema that may be structural."""
    kind = draw(st.sampled_from(["object", "array", "string", "integer", "number", "boolean"]))
    schema: JsonObject = {"type": "object" if depth == 0 else kind}
    if schema["type"] == "object" and depth < 3:
        names = draw(
            st.lists(st.sampled_from(["a", "b", "c", "$", "é", ""]), max_size=3, unique=True)
        )
        if depth == 0:
            names.append("spec")
        schema["properties"] = {name: draw(schemas(depth + 1)) for name in names}
        if draw(st.integers(0, 5)) == 0:
            schema["additionalProperties"] = draw(st.one_of(schemas(depth + 1), st.booleans()))
    if schema["type"] == "array" and draw(st.integers(0, 5)):
        schema["items"] = draw(schemas(depth + 1))
    for key in draw(st.lists(st.sampled_from(sorted(LIMITS)), max_size=1 + (depth > 0))):
        schema[key] = draw(LIMITS[key])
    return schema


@st.composite
def definitions(draw: st.DrawFn) -> JsonObject:
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": draw(schemas())},
    }
    if draw(st.booleans()):
        version["additionalPrinterColumns"] = [
            {
                "name": draw(shapes.texts),
                "type": draw(st.sampled_from(["string", "integer", "date", "number", "boolean"])),
                "jsonPath": draw(
                    st.sampled_from([".spec", ".spec.a", ".spec[*].a", ".metadata", "x"])
                ),
            }
        ]
    if draw(st.booleans()):
        version["subresources"] = {
            "status": {},
            "scale": {
                "specReplicasPath": draw(st.sampled_from([".spec.a", ".spec", ".status.a", "x"])),
                "statusReplicasPath": draw(st.sampled_from([".status.a", ".spec.a", ".x"])),
                "labelSelectorPath": draw(st.sampled_from(["", ".status.b", ".spec.b"])),
            },
        }
    definition: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "fuzz.example",
            "scope": "Namespaced",
            "names": {
                "plural": "fishes",
                "singular": "fish",
                "kind": "Fish",
                "listKind": "FishList",
            },
            "versions": [version],
        },
    }
    if draw(st.integers(0, 2)) == 0:
        spoiled = draw(shapes.spoil(definition))
        return spoiled if isinstance(spoiled, dict) else definition
    return definition


@st.composite
def definitions_with_objects(draw: st.DrawFn) -> tuple[JsonObject, list[JsonObject]]:
    """A definition, and objects made for it as far as it makes sense."""
    definition = draw(definitions())
    try:
        [resource] = custom_resources(definition)
    except Exception:  # whatever is wrong with it, the hub has to say so itself
        return definition, [{"metadata": {"name": "a"}, "spec": draw(shapes.values)}]
    return definition, draw(st.lists(shapes.objects_of(resource), min_size=1, max_size=3))


@budget(120)
@given(definitions_with_objects())
def test_a_definition_is_refused_or_serves_objects(
    driver: Driver, made: tuple[JsonObject, list[JsonObject]]
) -> None:
    definition, objects = made
    home = "/apis/fuzz.example/v1/namespaces/default/fishes"
    try:
        created = driver.send("POST", CRDS, definition)
        for body in objects:
            driver.send("POST", home, body)
        for name in ("a", "b"):
            _touch(driver, f"{home}/{name}", objects[0])
        if created.status == 201:
            for resource in list(driver.hub.store.catalogue):
                if resource.group == "fuzz.example":
                    promises.check_kind(driver, resource)
            assert driver.send("GET", "/openapi/v3/apis/fuzz.example/v1").status in (200, 404)
            assert driver.send("GET", "/openapi/v2").status == 200
            assert driver.send("GET", "/apis").status == 200
    finally:
        _clear(driver, home)


def _touch(driver: Driver, path: str, body: JsonObject) -> None:
    driver.send("PATCH", path, {"spec": body.get("spec")}, kind="application/merge-patch+json")
    driver.send("GET", f"{path}/scale")
    driver.send("PUT", f"{path}/scale", {"spec": {"replicas": 3}})
    driver.send("PUT", f"{path}/status", body)
    applied = {**body, "apiVersion": "fuzz.example/v1", "kind": "Fish"}
    query = {"fieldManager": "one", "force": "true"}
    driver.send("PATCH", path, applied, query=query, kind="application/apply-patch+yaml")


def _clear(driver: Driver, home: str) -> None:
    for name in ("a", "b", "c-1"):
        unheld = {"metadata": {"finalizers": None}}
        driver.send("PATCH", f"{home}/{name}", unheld, kind="application/merge-patch+json")
    driver.send("DELETE", f"{CRDS}/{NAME}")
    if driver.send("GET", f"{CRDS}/{NAME}").status == 200:
        unheld = {"metadata": {"finalizers": None}}
        driver.send("PATCH", f"{CRDS}/{NAME}", unheld, kind="application/merge-patch+json")
