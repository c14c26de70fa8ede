"""Expressions of tenants that would take the hub's time or memory are not evaluated.

Their cost is known before the runtime starts, so no test has to wait for what is refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairway.core.cycle import plan
from fairway.schema.cel.cost import EVALUATION_UNITS
from fairway.schema.cel.environment import CompileError, CostExceeded, compile
from fairway.schema.cel.rules import check_rules
from fairway.schema.cel.sizes import Scale
from fairway.schema.node import parse
from fairway.view.view import View
from tests.builders import NOW, cluster, flavor, policy, queue, told, workload


def binding(first: str, following: str, last: str, levels: int) -> str:
    """Variables `a0`, `a1` and so on, each made of the one before it, which is written `@`."""
    text = last.replace("@", f"a{levels}")
    for level in range(levels, 0, -1):
        text = f"cel.bind(a{level}, {following.replace('@', f'a{level - 1}')}, {text})"
    return f"cel.bind(a0, {first}, {text})"


LARGE = {
    "list": list(range(9_000)),
    "map": {f"key-{number}": number for number in range(9_000)},
    "text": "a" * 1_000_000,
    "numbers": list(range(90)),
    "number": 1 << 40,
}
WITH_ANY_VALUES = {
    "text that doubles": binding("'x'", "@ + @ + @ + @", "size(@) > 0", 14),
    "text that is replaced by itself": (
        "cel.bind(b, '" + "a" * 99 + "', cel.bind(c, b.replace('a', b), cel.bind(d, "
        "c.replace('a', b), cel.bind(e, d.replace('a', d), e.size() > 0))))"
    ),
    "lists that double": binding("[1]", "@ + @ + @ + @", "size(@) > 0", 14),
    "lists of one list, compared": binding("[1]", "[@, @, @, @, @, @, @, @]", "@ == @", 9),
    "lists of one list, flattened": binding("[1]", "[@, @, @, @]", "size(@.flatten(20)) > 0", 14),
    "lists of one list, returned": binding("[1]", "[@, @, @, @, @, @, @, @]", "@", 9),
    "a long range": "lists.range(100000000).size() > 0",
    "a range of a range": "lists.range(9000).map(x, lists.range(9000)).size() > 0",
    "a range, collected": "lists.range(9000).map(x, x).size() > 0",
    "a pattern that repeats": "'a'.matches('" + "(a{1,30}){1,30}" * 60 + "')",
    "a pattern in a loop": "lists.range(2000).all(x, !'a'.matches('(a{1,30}){1,30}b'))",
    "many operations in a loop": (f"lists.range(9000).all(x, {' && '.join(['x >= 0'] * 300)})"),
    "optional values of optional values": "optional.of(1)" + ".optMap(v, v)" * 10 + ".orValue(1)",
}
WITH_LARGE_VALUES = {
    "a list, collected": "self.list.map(x, x).size() > 0",
    "a list, filtered": "self.list.filter(x, true).size() > 0",
    "a map, transformed": "self.map.transformMap(k, v, v).size() > 0",
    "a list, sorted by a key": "self.list.sortBy(x, -x).size() > 0",
    "a list in each of its items": "self.list.map(x, self.list)",
    "membership of each item": "self.list.all(x, x in self.list)",
    "sets of many": "sets.contains(self.list, self.list)",
    "a pattern of many states": "self.text.matches('(a?){500}(a|b){500}c')",
    "a pattern that tenants give": "self.list.all(x, self.text.matches(self.text))",
    "text in a loop": "self.numbers.all(x, self.text.contains(self.text + 'b'))",
    "text of text": "self.numbers.map(x, self.text + self.text).join(self.text)",
    "text, replaced": "self.text.replace('a', 'aaaaaaaaaaaaaaa').size() > 0",
    "a range that tenants give": "lists.range(self.number).size() > 0",
}


@pytest.mark.parametrize("expression", WITH_ANY_VALUES.values(), ids=WITH_ANY_VALUES)
def test_an_expression_that_always_costs_too_much_does_not_compile(expression: str) -> None:
    with pytest.raises(CompileError, match=r"costs too much|too many parts"):
        compile(expression, {"self": "dyn"})


@pytest.mark.parametrize("expression", WITH_LARGE_VALUES.values(), ids=WITH_LARGE_VALUES)
def test_an_expression_that_costs_too_much_with_these_values_is_not_evaluated(
    expression: str,
) -> None:
    program = compile(expression, {"self": "dyn"})
    with pytest.raises(CostExceeded):
        program.evaluate({"self": LARGE})


USUAL: dict[str, tuple[str, Any]] = {
    "a field": ("self.text == 'a'", {**LARGE, "text": "a"}),
    "a field beside large ones": ("self.number > 1", LARGE),
    "a name": ("self.text.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')", {"text": "a" * 200}),
    "a large text by a pattern": ("self.text.matches('^a+$')", {"text": "a" * 100_000}),
    "unique names": (
        "self.all(a, self.exists_one(b, a.name == b.name))",
        [{"name": f"port-{number}", "note": "n" * 500} for number in range(90)],
    ),
    "a collected list": ("self.map(x, x + 1).filter(x, x > 9).size() > 0", list(range(900))),
    "a small range": ("lists.range(self.size()).all(x, self[x] == x)", list(range(500))),
    "a message": ("'%s of %d'.format([self.name, self.count])", {"name": "a", "count": 3}),
    "a quantity": ("quantity(self).isLessThan(quantity('10Gi'))", "1Gi"),
    "one of many": ("9 in self.list && 'key-1' in self.map", LARGE),
    "a loop over many": ("self.list.all(x, x >= 0)", LARGE),
}


@pytest.mark.parametrize(("expression", "value"), USUAL.values(), ids=USUAL)
def test_usual_expressions_are_evaluated(expression: str, value: Any) -> None:
    assert compile(expression, {"self": "dyn"}).evaluate({"self": value})


GROWING = (
    "self.text + self.text",
    "self.list + self.list",
    "[self.list, [self.list, self.text]]",
    "{'a': self, 'b': {'c': self}}",
    "self.list.map(x, [x, self.text])",
    "self.list.filter(x, x > 1)",
    "self.map.transformMap(k, v, [v, k])",
    "self.map.transformList(k, v, k + self.text)",
    "self.text.split('')",
    "self.text.replace('a', 'bcd')",
    "self.text.replace('', 'bcd')",
    "['a', self.text, 'b'].join(self.text)",
    "'%s %s %.30f'.format([self.text, self.list, 1.5])",
    "strings.quote(self.text)",
    "self.text.findAll('a')",
    "self.text.findAll('')",
    "lists.range(self.number)",
    "lists.range(self.number * 2 + size(self.text))",
    "[self.list, [self.list]].flatten(3)",
    "self.list.sortBy(x, -x)",
    "self.?missing.orValue(self.list + self.list)",
    "cel.bind(a, self.list, [a, a, a])",
    "self.number > 1 ? self.list + [self.map] : []",
    "self.list.map(x, self.list.map(y, x + y))",
)  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 7, 30])
@pytest.mark.parametrize("expression", GROWING)
def test_no_result_is_larger_than_its_bound(expression: str, size: int) -> None:
    value = {
        "text": "a" * size,
        "list": list(range(size)),
        "map": {f"k{number}": number for number in range(size)},
        "number": size,
    }
    program = compile(expression, {"self": "dyn"})
    result = program.evaluate({"self": value})
    assert program.cost({"self": value}, EVALUATION_UNITS) >= 2 * Scale().weigh(result)


def test_rules_of_one_write_share_a_budget() -> None:
    rule = {"rule": "self.all(x, self.exists(y, x == y))", "message": "none"}
    items = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    node = parse({"type": "object", "additionalProperties": items})
    lists = {f"list-{number:03}": list(range(number, number + 90)) for number in range(100)}
    assert check_rules(dict(list(lists.items())[:10]), None, node, is_update=False) == []
    faults = check_rules(lists, None, node, is_update=False)
    assert len(faults) == 1
    assert "cost exceeds limit for rule: none" in faults[0].message


COSTLY = "cluster.labels.all(a, cluster.labels.exists(b, a == b))"


def test_a_costly_policy_names_its_field_and_delays_no_other() -> None:
    many = {f"label-{number:02}": "v" for number in range(80)}
    view = View()
    for plain in (
        flavor("h100"),
        queue("q", 16),
        cluster("few", 8),
        cluster("many", 8, labels=many),
        policy("costly", selector={"expressions": ["true", COSTLY]}),
        policy("cheap", selector={"expressions": ["cluster.name == 'many'"]}),
        workload("a", "q", policy="costly"),
        workload("b", "q", policy="cheap"),
    ):
        view.put(plain)
    policies = view.facts(NOW).policies
    costly, cheap = policies["fairway-system/costly"], policies["fairway-system/cheap"]
    assert (costly.clusters, cheap.clusters) == (frozenset({"few"}), frozenset({"many"}))
    assert costly.faults == ("spec.selector.expressions[1] (costs too much)",)
    assert cheap.faults == ()
    assert len(told(plan(view.snapshot(NOW))[0])) == 2


def test_the_expressions_of_a_policy_share_a_budget() -> None:
    groups = [
        {"name": f"g{number}", "selector": {"expressions": [f"{COSTLY} && {number} >= 0"]}}
        for number in range(20)
    ]
    view = View()
    view.put(cluster("one", 8, labels={f"label-{number:02}": "v" for number in range(12)}))
    view.put(policy("p", groups=groups))
    found = view.facts(NOW).policies["fairway-system/p"]
    chosen = [group.name for group in found.groups if group.clusters]
    assert 0 < len(chosen) < 20
    assert len(chosen) + len(found.faults) == 20
