"""Typed objects to and from their wire form.

Reading is lenient: unknown fields are ignored and limits are not checked, since stored objects were
checked against the schema when they were written. An object that cannot be read is refused with the
path of the field. `documents` reads the text of manifests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
import yaml

from fairway.api import versions
from fairway.api.amounts import Quantity, QuantityError
from fairway.api.errors import BadRequest, FieldError, Invalid, show_value
from fairway.api.meta import VERSION, JsonObject, Object, Part

T = TypeVar("T", bound=Object)
P = TypeVar("P", bound=Part)

_PATH = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
_ANY_KEY = "[...]"


def decode(data: bytes | str | Mapping[str, Any], kind: type[T]) -> T:
    """An object of one of our kinds from JSON, or from its plain form."""
    data = _in_our_version(data, kind)
    try:
        if isinstance(data, bytes | str):
            object_ = _decoder(kind).decode(data)
        else:
            object_ = _convert(data, kind)
    except msgspec.ValidationError as fault:
        plain = msgspec.json.decode(data) if isinstance(data, bytes | str) else data
        raise _invalid(plain, kind, fault) from fault
    except msgspec.DecodeError as fault:
        raise BadRequest(f"the object is not JSON: {fault}") from fault
    expected = f"{kind.api_group}/{VERSION}"
    if object_.api_version != expected:
        message = f"expected {expected}, got {show_value(object_.api_version)}"
        fault_there = FieldError("apiVersion", "FieldValueInvalid", message)
        raise Invalid.of(kind.__name__, kind.api_group, object_.metadata.name, [fault_there])
    return cast("T", object_)


def _in_our_version(
    data: bytes | str | Mapping[str, Any], kind: type[Object]
) -> bytes | str | Mapping[str, Any]:
    """The object in the version of our types, if its kind has several versions."""
    if not versions.has_versions(kind.api_group, kind.__name__):
        return data
    try:
        plain = msgspec.json.decode(data) if isinstance(data, bytes | str) else data
    except msgspec.DecodeError:
        return data  # the reader reports the error
    if not isinstance(plain, Mapping):
        return data
    group, _, version = str(plain.get("apiVersion", "")).rpartition("/")
    if group != kind.api_group or not versions.knows(group, kind.__name__, version):
        return data
    return versions.convert(dict(plain), f"{group}/{VERSION}")


def decode_part(data: bytes | str, part: type[P]) -> P | None:
    """A part of an object from JSON that Fairway wrote; None if it cannot be read."""
    try:
        return msgspec.json.decode(data, type=part, dec_hook=_read_custom)
    except msgspec.DecodeError:
        return None


def encode(thing: msgspec.Struct) -> bytes:
    """The JSON of an object, or of a part of one."""
    return _ENCODER.encode(thing)


def to_plain(thing: msgspec.Struct) -> JsonObject:
    """An object, or a part of one, as plain JSON values."""
    plain: JsonObject = msgspec.json.decode(_ENCODER.encode(thing))
    return plain


def to_yaml(value: Any) -> str:
    """Plain JSON values as YAML that kubectl reads back as the same values."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        width=120,
        allow_unicode=True,
        default_flow_style=False,
    )
    return text


def _read_custom(kind: type, value: Any) -> Any:
    if kind is not Quantity:
        raise NotImplementedError(f"no wire form for {kind!r}")
    try:
        return Quantity.of(value)
    except QuantityError as fault:
        # msgspec adds the path to a ValueError of a hook.
        raise ValueError(str(fault)) from fault


def _write_custom(value: Any) -> str:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"no wire form for {type(value)!r}")


_ENCODER = msgspec.json.Encoder(enc_hook=_write_custom)


@cache
def _decoder(kind: type[Object]) -> msgspec.json.Decoder[Object]:
    return msgspec.json.Decoder(kind, dec_hook=_read_custom)


def _convert(data: Mapping[str, Any], kind: type[T]) -> T:
    return msgspec.convert(data, kind, dec_hook=_read_custom)


def _invalid(data: Any, kind: type[Object], fault: msgspec.ValidationError) -> Invalid:
    said, path = _part(fault)
    if _ANY_KEY in path and isinstance(data, Mapping):
        path = _with_key(data, kind, path)
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    field_error = FieldError(path, "FieldValueInvalid", said)
    return Invalid.of(kind.__name__, kind.api_group, str(name or ""), [field_error])


def _part(fault: msgspec.ValidationError) -> tuple[str, str]:
    """The message of msgspec, and the path that it is about."""
    match = _PATH.fullmatch(str(fault))
    said, path = (match[1], match[2]) if match else (str(fault), "")
    return said.replace("`", ""), path


def _with_key(data: Mapping[str, Any], kind: type[Object], path: str) -> str:
    """The path with the key that msgspec leaves out: the first key that is invalid by itself."""
    before, after = path.split(_ANY_KEY, 1)
    steps = [int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", before)]
    for key in _at(data, steps):
        try:
            _convert(_only(data, steps, key), kind)
        except msgspec.ValidationError as fault:
            if _part(fault)[1] == path:
                return f"{before}[{key}]{after}"
    return path


def _at(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _only(value: Any, steps: list[str | int], key: str) -> Any:
    """A copy whose mapping at the steps has only one key."""
    if not steps:
        return {key: value[key]}
    step, rest = steps[0], steps[1:]
    part = _only(value[step], rest, key)
    if isinstance(value, Mapping):
        return {**value, step: part}
    return [*value[: int(step)], part, *value[int(step) + 1 :]]


class _Dumper(yaml.SafeDumper):
    """Quotes all text that a YAML 1.1 reader would not read as text."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless)

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text and not re.search(r"[ \t]\n|^[ \n]|\t", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
# Text that kubectl's reader resolves and PyYAML's does not: makes the dumper quote it.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), list("yYnN"))
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?0[oO][0-7]+$"), list("-+0")
)
