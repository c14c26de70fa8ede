"""What an expression can cost at most, known before it is evaluated.

The runtime cannot be stopped once it evaluates, so the cost is bounded beforehand: by the syntax of
the expression and by the values it is evaluated with. Each part of it costs what its operands can
weigh, times how often loops can repeat it; what it makes is bounded too, so text that doubles and
lists of shared lists count at their full size. The bound depends on nothing else: the same
expression with the same values is accepted on every machine.

A unit is about 100 ns, as in Kubernetes, and at most 64 bytes of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import re2

from fairway.schema.cel import sizes
from fairway.schema.cel.sizes import BYTE, UNBOUNDED, Scale, Shape, Size, any_of, joined, text_of
from fairway.schema.cel.syntax import Call, Constant, Expression, Ident, Loop, Make, Select

EVALUATION_UNITS = 1_000_000
ITERATIONS_MAX = 10_000  # of all loops of an evaluation; the runtime stops there

_START = 100.0  # to begin an evaluation
_PYTHON = 12.0  # to give a value to a function in Python, by its weight
_RESULT = 2.0  # to give back the result, by its weight
_LOOK = 3.0  # to look at a value of the input for its size
_COPY = 0.5  # to copy an item of a list
_ONE = Size(number=1)
_PATTERN_BYTES_MAX = 1 << 18
_PATTERN_OPTIONS = re2.Options()
_PATTERN_OPTIONS.log_errors = False
_PATTERN_OPTIONS.max_mem = _PATTERN_BYTES_MAX
# A character of a pattern is at most this many instructions: RE2 repeats nothing more often.
_REPEATED_MAX = 1000

Arguments = Sequence[Shape]
# What a call costs, and what it returns.
Rule = Callable[[Call, Arguments], tuple[float, Shape]]


class _OverLimit(Exception):
    """The bound is beyond the limit, so it need not be known exactly."""


def cost_of(
    expression: Expression, shapes: Mapping[str, Shape], scale: Scale, limit: float
) -> float:
    """The most that an evaluation costs with such variables; UNBOUNDED past the limit."""
    meter = _Meter(scale, limit)
    try:
        result = meter.shape(expression, shapes, 1)
        meter.charge(_START + _RESULT * result.weight, 1)
    except _OverLimit:
        return UNBOUNDED
    return meter.units


class _Meter:
    """Adds up the cost of an expression; visits each part once."""

    def __init__(self, scale: Scale, limit: float) -> None:
        self.units = 0.0
        self._scale = scale
        self._limit = limit

    def charge(self, units: float, times: float) -> None:
        self.units += units * times
        if not self.units + _LOOK * self._scale.work <= self._limit:
            raise _OverLimit

    def shape(self, expression: Expression, scope: Mapping[str, Shape], times: float) -> Shape:
        """The bound of a value that is computed so many times; its cost is charged."""
        self.charge(1, times)
        match expression:
            case Ident(name):
                return scope.get(name, _ONE)
            case Constant(value):
                return _constant(value)
            case Select():
                operand = self.shape(expression.operand, scope, times)
                return _ONE if expression.is_test else operand.part(expression.field)
            case Make():
                parts = [self.shape(part, scope, times) for part in expression.parts]
                self.charge(len(parts), times)
                return Size(
                    weight=1 + sum(part.weight for part in parts),
                    count=len(parts),
                    items=tuple(parts),
                    is_map=not expression.is_list,
                )
            case Call():
                return self._call(expression, scope, times)
            case Loop():
                return self._loop(expression, scope, times)

    def _call(self, call: Call, scope: Mapping[str, Shape], times: float) -> Shape:
        arguments = [self.shape(part, scope, times) for part in call.arguments]
        units, result = _RULES.get(call.name, _other)(call, arguments)
        self.charge(units, times)
        return Size(number=result.number) if call.is_scalar else result

    def _loop(self, loop: Loop, scope: Mapping[str, Shape], times: float) -> Shape:
        ranged = self.shape(loop.range, scope, times)
        start = self.shape(loop.start, scope, times)
        count = min(ranged.count, ITERATIONS_MAX)
        collected = start
        if count:
            item = ranged.part(None)
            inner = {**scope, loop.variable: item, loop.collected: start}
            if loop.second_variable:
                inner[loop.variable] = any_of((item, sizes.number_of(ranged.count)))
                inner[loop.second_variable] = item
            repeated = min(times * count, ITERATIONS_MAX)
            self.shape(loop.condition, inner, repeated)
            step = self.shape(loop.step, inner, repeated)
            collected = _collected(start, step, count)
            # What was collected so far is copied at each step.
            copied = _PYTHON * collected.weight if _inserts(loop.step) else collected.count * _COPY
            self.charge(copied / 2, repeated)
        return self.shape(loop.result, {**scope, loop.collected: collected}, times)


def _collected(start: Shape, step: Shape, count: float) -> Shape:
    """What a loop collects. Macros only ever add to it, the same at each step."""
    growth = step.weight - start.weight
    if growth <= 0:
        return any_of((start, step))
    return Size(
        weight=min(start.weight + count * growth, UNBOUNDED),
        count=min(start.count + count * max(0.0, step.count - start.count), UNBOUNDED),
        text=max(start.text, step.text),
        number=max(start.number, step.number),
        like=(start, step),
    )


def _inserts(step: Expression) -> bool:
    """Whether a step adds to a map, which a function in Python does."""
    if not isinstance(step, Call):
        return False
    return step.name == _INSERT or (step.name == "_?_:_" and any(map(_inserts, step.arguments)))


def _constant(value: object) -> Size:
    match value:
        case str():
            return text_of(len(value.encode()))
        case bytes():
            return text_of(len(value))
        case int():
            return sizes.number_of(abs(value))
    return _ONE


def _least(arguments: Arguments) -> float:
    return min((shape.weight for shape in arguments), default=0)


def _other(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    """Any other function: linear, perhaps in Python, and its result not much larger."""
    total = joined(arguments)
    result = Size(
        weight=2 * total.weight + 10,
        count=total.count + total.text + 2,
        text=2 * total.text + 64,
        number=UNBOUNDED,
        items=tuple(arguments),
        like=tuple(arguments),
    )
    return 20 + _PYTHON * total.weight, result


def _free(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 0, _ONE


def _pass(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    """Returns one of its arguments."""
    return 0, any_of(arguments) if arguments else _ONE


def _choose(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 0, any_of(arguments[1:])


def _take(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    key = call.arguments[1]
    return BYTE * arguments[1].text, arguments[0].part(
        key.value if isinstance(key, Constant) else None
    )


def _compare(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return _least(arguments), _ONE


def _contain(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    wanted, within = arguments
    return (BYTE * wanted.text if within.is_map else within.weight), _ONE


def _add(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    total = joined(arguments)
    return BYTE * total.text + _COPY * total.count, total


def _subtract(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 0, sizes.number_of(sum(shape.number for shape in arguments))


def _multiply(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 0, sizes.number_of(arguments[0].number * arguments[1].number)


def _keep_number(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 0, sizes.number_of(arguments[0].number)


def _measure(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    value = arguments[0]
    return BYTE * value.text, sizes.number_of(max(value.count, value.text))


def _match(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    """The runtime compiles a pattern each time, then reads the text once for all its states."""
    text, pattern = arguments[:2]
    given = call.arguments[1]
    if isinstance(given, Constant) and isinstance(given.value, str):
        instructions = _instructions(given.value)
    else:
        instructions = _REPEATED_MAX * pattern.text
    units = (10 + 2 * BYTE * text.text) * instructions
    part = text_of(text.text)
    if call.name == "findAll":
        return units + 2 * text.text, sizes.list_of(text.text + 1, part)
    return units, part


@lru_cache(maxsize=1024)
def _instructions(pattern: str) -> float:
    """The size of a compiled pattern; UNBOUNDED if it is too large to try."""
    try:
        return float(re2.compile(pattern, _PATTERN_OPTIONS).programsize)
    except re2.error as fault:
        return UNBOUNDED if "too large" in str(fault) else 1.0


def _search(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    within, wanted = arguments[:2]
    units = BYTE * (within.text + wanted.text) + 0.001 * within.text * wanted.text
    if within.count:
        units += _PYTHON * within.weight
    return units, sizes.number_of(max(within.text, within.count))


def _replace(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    within, wanted, other = arguments[:3]
    text = text_of(within.text + (within.text + 1) * other.text)
    return BYTE * text.text + 0.001 * within.text * wanted.text, text


def _split(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    text = arguments[0].text
    pieces = Size(weight=1 + (1 + BYTE) * (text + 1), count=text + 1, items=(text_of(text),))
    return 2 * text, pieces


def _join(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    between = arguments[1].text if len(arguments) > 1 else 0
    text = text_of(arguments[0].weight / BYTE + arguments[0].count * between)
    return BYTE * text.text + arguments[0].count, text


def _format(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    template = call.arguments[0]
    clauses, longest = arguments[0].text, 1100
    if isinstance(template, Constant) and isinstance(template.value, str):
        clauses = template.value.count("%")
        longest = 1100 if "." in template.value else 64
    text = text_of(arguments[0].text + clauses * longest + 2 * arguments[1].weight / BYTE)
    return BYTE * text.text, text


def _range(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    count = arguments[0].number
    return count, sizes.list_of(count, sizes.number_of(count))


def _flatten(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    weight = arguments[0].weight
    everything = sizes.Whole(weight / BYTE)
    return weight, Size(weight=weight, count=weight, items=(everything,))


def _compare_sets(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    left, right = arguments
    return left.count * right.weight + right.count * left.weight, _ONE


def _distinct(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return arguments[0].count * arguments[0].weight, arguments[0]


def _sort(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 20 * sum(shape.weight for shape in arguments), arguments[0]


def _cut(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    """Returns a part of its first argument, or all of it in another order or case."""
    return arguments[0].weight, arguments[0]


def _take_end(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    return 0, arguments[0].part(None)


def _write(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    text = text_of(max(2 * arguments[0].text + 2, 64))
    return BYTE * text.text, text


def _insert(call: Call, arguments: Arguments) -> tuple[float, Shape]:
    entries, *rest = arguments
    added = Size(
        weight=sum(shape.weight for shape in arguments),
        count=entries.count + max(1.0, *(shape.count for shape in rest)),
        items=tuple(rest),
        like=tuple(arguments),
        is_map=True,
    )
    return _PYTHON * added.weight, added


_INSERT = "cel.@mapInsert"
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false", "hasValue", "type"), _free),
    **dict.fromkeys(
        (
            "value", "orValue", "or", "optional.of", "optional.ofNonZeroValue", "optional.none",
            "dyn",
        ),
        _pass,
    ),
    "_?_:_": _choose,
    **dict.fromkeys(("_[_]", "_[?_]", "_?._"), _take),
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compare),
    **dict.fromkeys(("startsWith", "endsWith"), _compare),
    "@in": _contain,
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    **dict.fromkeys(("_/_", "_%_", "-_"), _keep_number),
    "size": _measure,
    **dict.fromkeys(("matches", "find", "findAll"), _match),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _search),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "format": _format,
    "lists.range": _range,
    "flatten": _flatten,
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _compare_sets),
    "distinct": _distinct,
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), _sort),
    **dict.fromkeys(
        ("slice", "reverse", "substring", "charAt", "trim", "lowerAscii", "upperAscii"), _cut
    ),
    **dict.fromkeys(("first", "last"), _take_end),
    **dict.fromkeys(("string", "bytes", "strings.quote", "timestamp", "duration"), _write),
    _INSERT: _insert,
}  # fmt: skip
