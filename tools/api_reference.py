"""Writes docs/reference/api.md from the types.

    python tools/api_reference.py              write the file
    python tools/api_reference.py --print      print it instead

A test keeps the committed file equal to the types.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import inspect

from fairway.api.amounts import Quantity
from fairway.api.doc import rules_of
from fairway.api.kinds import CATEGORY, KINDS, Kind
from fairway.api.meta import API_VERSION, Object

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "api.md"

_INTRODUCTION = f"""# API reference

Group and version `{API_VERSION}` where no other is named; all kinds are in the category
`{CATEGORY}` (`kubectl get {CATEGORY}`). This page is made from the types by
`tools/api_reference.py`.

A quantity is a number or a text such as `500m`, `80Gi`, `1e3` or `1.5`, kept exactly. A field that
is not required may be left out; where no default is given, its description says what that means.
"""


def render() -> str:
    """The whole page."""
    parts_by_kind = {kind.name: list(_parts_of(kind)) for kind in KINDS}
    seen: dict[type, int] = {}
    for parts in parts_by_kind.values():
        for part in parts:
            seen[part.cls] = seen.get(part.cls, 0) + 1
    lines = [_INTRODUCTION]
    shared: dict[str, inspect.StructType] = {}
    for kind in KINDS:
        lines.append(_kind_section(kind))
        for part in parts_by_kind[kind.name]:
            if seen[part.cls] > 1:
                shared[part.cls.__name__] = part
            else:
                lines.append(_part_section(part))
    lines.append("## Shared parts\n\nParts that several kinds have.\n")
    lines.extend(_part_section(shared[name]) for name in sorted(shared))
    return "\n".join(lines)


def _parts_of(kind: Kind) -> Iterator[inspect.StructType]:
    """All structs below the versions of a kind, each once, in the order of first use."""
    found = [kind.struct, *(item.struct for item in kind.further)]
    yield from {part.cls: part for item in found for part in _parts_below(item)}.values()


def _parts_below(kind: type[Object]) -> Iterator[inspect.StructType]:
    """All structs below a type, each once, in the order of first use."""
    met: set[type] = set()

    def walk(found: inspect.Type) -> Iterator[inspect.StructType]:
        match found:
            case inspect.Metadata():
                yield from walk(found.type)
            case inspect.UnionType():
                for type_ in found.types:
                    yield from walk(type_)
            case inspect.VarTupleType():
                yield from walk(found.item_type)
            case inspect.DictType():
                yield from walk(found.value_type)
            case inspect.StructType() if found.cls not in met:
                met.add(found.cls)
                yield found
                for field in found.fields:
                    yield from walk(field.type)

    whole = inspect.type_info(kind)
    assert isinstance(whole, inspect.StructType)
    for other in whole.fields:
        if other.name in ("spec", "status"):
            yield from walk(other.type)


def _kind_section(kind: Kind) -> str:
    scope = "namespaced" if kind.is_namespaced else "cluster-scoped"
    short = ", ".join(f"`{name}`" for name in kind.short_names)
    lines = [
        f"## {kind.name}\n",
        f"{_sentence(kind.struct)}\n",
        f"`{kind.qualified}`, short {short}, {scope}.\n",
        *_version_lines(kind),
        *_rule_lines(kind.struct),
    ]
    return "\n".join(lines)


def _version_lines(kind: Kind) -> list[str]:
    """What else it is served as."""
    lines = []
    for item in kind.further:
        spec = next(part for part in _parts_below(item.struct))
        name = spec.cls.__name__
        lines.append(
            f"Also served as `{kind.struct.api_group}/{item.name}`, whose spec is "
            f"[{name}](#{name.lower()}); either version reads what the other wrote.\n"
        )
    return lines


def _part_section(part: inspect.StructType) -> str:
    lines = [
        f"### {part.cls.__name__}\n",
        f"{_sentence(part.cls)}\n",
        "| field | type | default | description |",
        "|---|---|---|---|",
    ]
    for field in part.fields:
        extra = (
            field.type.extra_json_schema or {} if isinstance(field.type, inspect.Metadata) else {}
        )
        lines.append(
            f"| `{field.encode_name}` | {_type_text(field.type)} | {_default_text(field)} "
            f"| {extra.get('description', '')}{_limit_text(extra)} |"
        )
    return "\n".join([*lines, "", *_rule_lines(part.cls)])


def _rule_lines(kind: type) -> list[str]:
    declared = rules_of(kind)
    if not declared:
        return []
    return ["Rules:\n", *(f"- {_capital(rule.message)}." for rule in declared), ""]


def _type_text(found: inspect.Type) -> str:
    match found:
        case inspect.Metadata():
            return _type_text(found.type)
        case inspect.UnionType():
            given = [type_ for type_ in found.types if not isinstance(type_, inspect.NoneType)]
            return _type_text(given[0])
        case inspect.VarTupleType():
            return f"list of {_type_text(found.item_type)}"
        case inspect.DictType() if isinstance(found.value_type, inspect.AnyType):
            return "object"
        case inspect.DictType():
            return f"map of {_type_text(found.value_type)}"
        case inspect.StructType():
            name = found.cls.__name__
            return f"[{name}](#{name.lower()})"
        case inspect.LiteralType():
            return " \\| ".join(f"`{value}`" for value in found.values)
        case _:
            return _scalar_text(found)


def _scalar_text(found: inspect.Type) -> str:
    match found:
        case inspect.StrType():
            return "string"
        case inspect.BoolType():
            return "boolean"
        case inspect.IntType():
            return "integer"
        case inspect.DateTimeType():
            return "time"
        case inspect.CustomType() if found.cls is Quantity:
            return "quantity"
    raise TypeError(f"no name for {found!r}")


def _default_text(one: inspect.Field) -> str:
    if one.required:
        return "required"
    match one.default:
        case bool():
            return f"`{str(one.default).lower()}`"
        case int() | Quantity():
            return f"`{one.default}`"
        case str() if one.default:
            return f"`{one.default}`"
        case tuple() if one.default:
            return ", ".join(f"`{value}`" for value in one.default)
        case _:
            return ""


def _limit_text(extra: dict[str, object]) -> str:
    least, most = extra.get("minimum"), extra.get("maximum")
    if least is not None and most is not None and abs(int(str(least))) <= 100:
        return f" From {least} to {most}." if abs(int(str(most))) <= 20_000 else ""
    return ""


def _sentence(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def main() -> None:
    if "--print" in sys.argv:
        print(render())
        return
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(render())


if __name__ == "__main__":
    main()
