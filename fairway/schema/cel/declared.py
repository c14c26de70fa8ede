"""Functions written in Python and declared to the CEL runtime.

The runtime can't hold Python objects inside expressions, so a value of a library's own type (a
quantity, an address) is a map with one entry that names the type: `{"quantity": "5"}`. Equal values
make equal maps, so CEL's own `==` works on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cel_expr_python import cel

Kind = Literal[
    "dyn", "bool", "int", "double", "string", "bytes", "timestamp", "duration", "list", "map",
    "list<string>", "map<string,string>", "map<string,list<string>>", "map<string,timestamp>",
    "map<string,duration>",
]  # fmt: skip
Opaque = dict[str, Any]

_LIST_OF_STRINGS = cel.Type.List(cel.Type.STRING)
TYPES: Mapping[Kind, Any] = {
    "dyn": cel.Type.DYN,
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "string": cel.Type.STRING,
    "bytes": cel.Type.BYTES,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
    "list": cel.Type.LIST,
    "map": cel.Type.MAP,
    "list<string>": _LIST_OF_STRINGS,
    "map<string,string>": cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
    "map<string,list<string>>": cel.Type.Map(cel.Type.STRING, _LIST_OF_STRINGS),
    "map<string,timestamp>": cel.Type.Map(cel.Type.STRING, cel.Type.TIMESTAMP),
    "map<string,duration>": cel.Type.Map(cel.Type.STRING, cel.Type.DURATION),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One overload of a function."""

    name: str
    parameters: tuple[Kind, ...]
    returns: Kind
    implementation: Callable[..., Any]
    is_member: bool


def function(
    name: str, parameters: tuple[Kind, ...], returns: Kind, implementation: Callable[..., Any]
) -> Declared:
    """A function called as `name(…)`."""
    return Declared(
        name=name,
        parameters=parameters,
        returns=returns,
        implementation=implementation,
        is_member=False,
    )


def method(
    name: str, parameters: tuple[Kind, ...], returns: Kind, implementation: Callable[..., Any]
) -> Declared:
    """A function called as `receiver.name(…)`; the receiver is the first parameter."""
    return Declared(
        name=name,
        parameters=parameters,
        returns=returns,
        implementation=implementation,
        is_member=True,
    )


def extension(name: str, functions: Iterable[Declared]) -> Any:
    """The functions as one extension of the runtime."""
    overloads: dict[str, list[Any]] = {}
    for function in functions:
        style = "method" if function.is_member else "function"
        overloads.setdefault(function.name, []).append(
            cel.Overload(
                f"{name}_{function.name}_{style}_{'_'.join(function.parameters)}",
                return_type=TYPES[function.returns],
                parameters=[TYPES[kind] for kind in function.parameters],
                is_member=function.is_member,
                impl=function.implementation,
            )
        )
    return cel.CelExtension(name, [cel.FunctionDecl(key, of) for key, of in overloads.items()])


def open_value(value: Opaque, kind: str) -> Any:
    """The content of an opaque value of this kind."""
    if kind not in value:
        raise ValueError("no such overload")
    return value[kind]
