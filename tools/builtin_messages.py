"""Makes the table of Kubernetes' protobuf messages from its published Go modules.

Usage: python tools/builtin_messages.py API_FOLDER APIMACHINERY_FOLDER APIEXTENSIONS_FOLDER

Each folder is a module's root. The `generated.proto` files give field numbers and types; the tags
of the Go structs beside them give the JSON names, which fields vanish when zero, and which are
inlined. Only these facts of the wire format are kept, for the kinds served and all that they hold.
fairway/server/wire/protobuf.py says how the table is read. Run this when the Kubernetes version
followed changes, and read the difference of the result.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from fairway.resources.builtin.kinds import REVIEWS, STORED

TARGET = Path(__file__).parent.parent / "fairway/resources/builtin/messages.json"
META = "apimachinery.pkg.apis.meta.v1"
AUTHENTICATION = "api.authentication.v1"

FOLDERS = (
    *(
        (0, f"{group}/v1")
        for group in (
            "apps",
            "authentication",
            "authorization",
            "autoscaling",
            "batch",
            "coordination",
            "core",
            "rbac",
            "resource",
            "scheduling",
        )
    ),
    (0, "autoscaling/v2"),
    (1, "pkg/apis/meta/v1"),
    (1, "pkg/runtime"),
    (1, "pkg/api/resource"),
    (1, "pkg/util/intstr"),
    (2, "pkg/apis/apiextensions/v1"),
)

SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})

# Messages whose JSON is not an object with their fields; the decoder knows these words.
_SCHEMA = "apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON"
FORMS = {
    f"{META}.Time": "time",
    f"{META}.MicroTime": "micro-time",
    f"{META}.FieldsV1": "json",
    f"{_SCHEMA}": "json",
    f"{_SCHEMA}SchemaPropsOrArray": "schema-or-array",
    f"{_SCHEMA}SchemaPropsOrBool": "schema-or-bool",
    f"{_SCHEMA}SchemaPropsOrStringArray": "schema-or-strings",
    "apimachinery.pkg.api.resource.Quantity": "quantity",
    "apimachinery.pkg.runtime.RawExtension": "json",
    "apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "api.authentication.v1.ExtraValue": "strings",
    "api.authorization.v1.ExtraValue": "strings",
}
SCHEMA_PROPERTIES = f"{_SCHEMA}SchemaProps"

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(optional|repeated|map<string, )\s*([\w.]+)>? (\w+) = (\d+);", re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"^\s*(?:\w+\s+)?([^\s`]+)\s+`([^`]*)`", re.MULTILINE)
_JSON_TAG = re.compile(r'json:"([^"]*)"')
_WIRE_TAG = re.compile(r'protobuf:"\w+,(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """What a Go struct says of one field."""

    name: str
    options: tuple[str, ...]
    is_pointer: bool


Entry = list[str]
Message = dict[int, Entry]


def main(roots: list[Path]) -> None:
    known: dict[str, Message] = {}
    for root, folder in FOLDERS:
        known.update(messages(roots[root] / folder))
    kinds = served_kinds()
    kept = closure([*kinds.values(), SCHEMA_PROPERTIES], known)
    content = {"kinds": kinds} | {name: dict(sorted(known[name].items())) for name in sorted(kept)}
    lines = [
        f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
        for name, value in content.items()
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{TARGET}: {len(kept)} messages, {TARGET.stat().st_size} bytes")


def served_kinds() -> dict[str, str]:
    """The message of each kind that a request may carry, by API version and kind."""
    found = {"DeleteOptions": f"{META}.DeleteOptions"}
    for kind in (*STORED, *REVIEWS):
        package = kind.package.removeprefix("io.k8s.").replace("-", "_")
        found[f"{kind.group}/{kind.version}/{kind.kind}".lstrip("/")] = f"{package}.{kind.kind}"
    found["authentication.k8s.io/v1/TokenRequest"] = f"{AUTHENTICATION}.TokenRequest"
    found["autoscaling/v1/Scale"] = "api.autoscaling.v1.Scale"
    return dict(sorted(found.items()))


def messages(folder: Path) -> dict[str, Message]:
    """Every message that a package declares, by its full name."""
    text = re.sub(r"//.*", "", (folder / "generated.proto").read_text())
    declared = re.search(r"^package k8s\.io\.([\w.]+);", text, re.MULTILINE)
    assert declared, folder
    package, tags = declared[1], struct_tags(folder)
    return {
        f"{package}.{name}": {
            int(number): entry(
                label, full_name(type_, package), proto_name, tags.get((name, int(number)))
            )
            for label, type_, proto_name, number in _FIELD.findall(body)
        }
        for name, body in _MESSAGE.findall(text)
    }


def struct_tags(folder: Path) -> dict[tuple[str, int], Tag]:
    """The tags of Go's structs, by struct and field number."""
    found: dict[tuple[str, int], Tag] = {}
    for path in sorted(folder.glob("*.go")):
        if path.name.endswith("_test.go") or path.name.startswith(("generated", "zz_generated")):
            continue
        text = re.sub(r"^\s*//.*\n", "", path.read_text(), flags=re.MULTILINE)
        for struct, body in _STRUCT.findall(text):
            for go_type, tag in _TAGGED.findall(body):
                wire, shown = _WIRE_TAG.search(tag), _JSON_TAG.search(tag)
                if wire and shown:
                    name, *options = shown[1].split(",")
                    found[struct, int(wire[1])] = Tag(
                        name=name, options=tuple(options), is_pointer=go_type.startswith("*")
                    )
    return found


def full_name(type_: str, package: str) -> str:
    if type_ in SCALARS:
        return type_
    if type_.startswith("."):
        return type_.removeprefix(".k8s.io.")
    return f"{package}.{type_}"


def entry(label: str, type_: str, proto_name: str, tag: Tag | None) -> Entry:
    """JSON name, type, and at most one word: list, map, inline, or omit (when zero)."""
    name = tag.name if tag else proto_name
    how = {"repeated": "list", "map<string, ": "map"}.get(label, "")
    if tag and not how:
        if "inline" in tag.options:
            name, how = "", "inline"
        elif not tag.is_pointer and _vanishes(type_, tag.options):
            how = "omit"
    return [name, FORMS.get(type_, type_), how]


def _vanishes(type_: str, options: tuple[str, ...]) -> bool:
    # Go calls no struct empty, so only `omitzero` hides one.
    return "omitzero" in options or ("omitempty" in options and type_ in SCALARS)


def closure(roots: list[str], known: dict[str, Message]) -> set[str]:
    """These messages and all that they hold."""
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(type_ for _, type_, _ in known[name].values() if "." in type_)
    return found


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:4]])
