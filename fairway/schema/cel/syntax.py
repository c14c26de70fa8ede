"""A checked expression as a tree, read from its wire form (cel-spec's `CheckedExpr`).

Macros are expanded: `map`, `all` and the like are `Loop`s, and so is `cel.bind`, with an empty
range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

# Field numbers of an expression, by what it is.
_CONSTANT, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _LOOP = range(3, 10)
_SCALAR_TYPES = frozenset({1, 2, 3, 4})  # primitive types other than strings and bytes


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field of an operand; a test says only whether it is there."""

    id: int
    operand: Expression
    field: str
    is_test: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A call; the receiver of a method is its first argument."""

    id: int
    name: str
    arguments: tuple[Expression, ...]
    is_scalar: bool  # a bool, a number, a time or null, by its checked type


@dataclass(frozen=True, slots=True)
class Make:
    """A list or a map; `parts` are its items, or its keys and values."""

    parts: tuple[Expression, ...]
    is_list: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """`result` is evaluated after `step` was, for each item, while `condition` held."""

    variable: str
    second_variable: str
    range: Expression
    collected: str  # the variable that each step replaces
    start: Expression
    condition: Expression
    step: Expression
    result: Expression


Expression = Constant | Ident | Select | Call | Make | Loop


class Syntax(NamedTuple):
    """An expression with the offsets of its parts in the source, by their ids."""

    expression: Expression
    offset_by_id: dict[int, int]


def read_syntax(serialized: bytes) -> Syntax:
    """The tree of an expression that `Program.serialize` gave."""
    # The checked expression is wrapped in an envelope that names its type.
    checked = _part(_read(serialized), 2)
    scalars = frozenset(
        _number(entry, 1) for entry in _parts(checked, 3) if _is_scalar(_part(entry, 2))
    )
    offsets = {_number(entry, 1): _number(entry, 2) for entry in _parts(_part(checked, 5), 4)}
    return Syntax(_expression(_part(checked, 4), scalars), offsets)


_Message = dict[int, list[Any]]


def _is_scalar(kind: _Message) -> bool:
    return _number(kind, 3) in _SCALAR_TYPES or _number(kind, 5) > 1 or 2 in kind


def _expression(message: _Message, scalars: frozenset[int]) -> Expression:
    def below(part: _Message, number: int) -> Expression:
        return _expression(_part(part, number), scalars)

    identity = _number(message, 2)
    if _IDENT in message:
        return Ident(_text(_part(message, _IDENT), 1))
    if _SELECT in message:
        select = _part(message, _SELECT)
        return Select(identity, below(select, 1), _text(select, 2), bool(_number(select, 3)))
    if _CALL in message:
        call = _part(message, _CALL)
        receiver = (below(call, 1),) if 1 in call else ()
        rest = tuple(_expression(part, scalars) for part in _parts(call, 3))
        return Call(identity, _text(call, 2), receiver + rest, identity in scalars)
    if _LIST in message:
        items = _parts(_part(message, _LIST), 1)
        return Make(tuple(_expression(item, scalars) for item in items), is_list=True)
    if _STRUCT in message:
        entries = _parts(_part(message, _STRUCT), 2)
        parts = (below(entry, number) for entry in entries for number in (3, 4) if number in entry)
        return Make(tuple(parts), is_list=False)
    if _LOOP in message:
        loop = _part(message, _LOOP)
        return Loop(
            variable=_text(loop, 1),
            second_variable=_text(loop, 8),
            range=below(loop, 2),
            collected=_text(loop, 3),
            start=below(loop, 4),
            condition=below(loop, 5),
            step=below(loop, 6),
            result=below(loop, 7),
        )
    return Constant(_constant(_part(message, _CONSTANT)))


def _constant(message: _Message) -> Any:
    """A string, bytes or an integer; None for any other constant."""
    if 6 in message:
        return _text(message, 6)
    if 7 in message:
        return bytes(message[7][-1])
    for number in (3, 4):
        if number in message:
            value = _number(message, number)
            return value - (1 << 64) if number == 3 and value >= 1 << 63 else value
    return None


def _number(message: _Message, field: int) -> int:
    return int(message.get(field, [0])[-1])


def _text(message: _Message, field: int) -> str:
    return bytes(message.get(field, [b""])[-1]).decode()


def _part(message: _Message, field: int) -> _Message:
    known = message.get(field)
    return _read(known[-1]) if known else {}


def _parts(message: _Message, field: int) -> Iterator[_Message]:
    return map(_read, message.get(field, ()))


def _read(data: bytes) -> _Message:
    """A message: its values by field number."""
    values: _Message = {}
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        value: Any
        match tag & 7:
            case 0:
                value, place = _varint(data, place)
            case 1:
                value, place = data[place : place + 8], place + 8
            case 2:
                size, place = _varint(data, place)
                value, place = data[place : place + size], place + size
            case _:
                value, place = data[place : place + 4], place + 4
        values.setdefault(tag >> 3, []).append(value)
    return values


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
