"""Which fields of the API's types code reads: each attribute with the type that it is read of.

Types are inferred from what stands in the code: annotations of arguments, results, attributes and
variables, and the types of the fields that lead to an expression. What cannot be inferred counts as
read of nothing, so a field with a common name does not pass because another type has one too.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from fairway.api.meta import Part

Types = frozenset[str]
NONE: Types = frozenset()


def parts_in(hint: Any) -> Iterator[type[Part]]:
    """The structs in a type."""
    if isinstance(hint, type) and issubclass(hint, Part):
        yield hint
    for inner in get_args(hint):
        yield from parts_in(inner)


def field_types(structs: Iterable[type[Part]]) -> dict[tuple[str, str], Types]:
    """What each field of some structs holds, by struct and attribute."""
    return {
        (struct.__name__, each.name): frozenset(part.__name__ for part in parts_in(each.type))
        for struct in structs
        for each in msgspec.structs.fields(struct)
    }


@dataclass
class Known:
    """What annotations say, over all modules."""

    fields: Mapping[tuple[str, str], Types]
    structs: Types
    attributes: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    results: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def learn(self, tree: ast.Module, aliases: Mapping[str, str]) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign):
                name = getattr(node.target, "id", getattr(node.target, "attr", ""))
                self.attributes[name] |= self.named(node.annotation, aliases)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
                self.results[node.name] |= self.named(node.returns, aliases)

    def named(self, annotation: ast.AST | None, aliases: Mapping[str, str]) -> Types:
        """The structs that an annotation names."""
        names = set[str]()
        if isinstance(annotation, ast.Name):
            return self.structs & {aliases.get(annotation.id, annotation.id)}
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Name):
                names.add(aliases.get(node.id, node.id))
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
        return self.structs & names


def aliases_in(tree: ast.Module) -> dict[str, str]:
    """Names under which a module imports something with another name."""
    return {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }


class Reader(ast.NodeVisitor):
    """Walks one module, and notes each field with the struct that it is read of."""

    def __init__(self, known: Known, aliases: Mapping[str, str]) -> None:
        self._known = known
        self._aliases = aliases
        self._scopes: list[dict[str, Types]] = [{}]
        self.reads: set[tuple[str, str]] = set()

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._function(node)
            case ast.For() | ast.AsyncFor():
                self._bind(node.target, self.types_of(node.iter))
                self.generic_visit(node)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                self.types_of(node)
                self.generic_visit(node)
            case _:
                super().visit(node)

    # What an expression holds.

    def types_of(self, node: ast.AST | None) -> Types:
        match node:
            case ast.Name(id=name):
                scopes = (scope for scope in reversed(self._scopes) if name in scope)
                return next(scopes, {}).get(name, NONE)
            case ast.Attribute(value=value, attr=name):
                return self._held(value, name)
            case ast.Call():
                return self._made(node)
            case ast.BoolOp(values=several) | ast.Tuple(elts=several) | ast.List(elts=several):
                return self._any(several)
            case ast.IfExp(body=body, orelse=other):
                return self._any((body, other))
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self._in_comprehension(node)
            case ast.Subscript() | ast.Await() | ast.Starred() | ast.NamedExpr():
                return self.types_of(node.value)
        return NONE

    def _held(self, value: ast.AST, name: str) -> Types:
        known = self._known
        held = [known.fields.get((struct, name), NONE) for struct in self.types_of(value)]
        return NONE.union(*held) or frozenset(known.attributes[name] | known.results[name])

    def _made(self, node: ast.Call) -> Types:
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        made = frozenset(self._known.results[name]) | self._known.structs & {name}
        if made:
            return made
        of = self.types_of(node.func.value) if isinstance(node.func, ast.Attribute) else NONE
        names = {each.id for each in node.args if isinstance(each, ast.Name)}
        return of or self._any(node.args) | self._known.structs & names

    def _in_comprehension(self, node: Any) -> Types:
        for each in node.generators:
            self._bind(each.target, self.types_of(each.iter))
        return self.types_of(node.value if isinstance(node, ast.DictComp) else node.elt)

    def _any(self, nodes: Iterable[ast.AST]) -> Types:
        return NONE.union(*(self.types_of(node) for node in nodes))

    def _bind(self, target: ast.AST, types: Types) -> None:
        if isinstance(target, ast.Attribute):
            self._known.attributes[target.attr] |= types
            return
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and types:
                self._scopes[-1][node.id] = self._scopes[-1].get(node.id, NONE) | types

    # What is walked.

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            self.reads.update((struct, node.attr) for struct in self.types_of(node.value))

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for struct in self._named(node.cls):
            for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
                self.reads.add((struct, name))
                if isinstance(pattern, ast.MatchAs) and pattern.name:
                    self._bind_name(pattern.name, self._known.fields.get((struct, name), NONE))
        self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        self._scopes.append({})
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self._bind_name(argument.arg, self._named(argument.annotation))
        self.generic_visit(node)
        self._scopes.pop()

    def _named(self, node: ast.AST | None) -> Types:
        return self._known.named(node, self._aliases)

    def visit_Call(self, node: ast.Call) -> None:
        """Fields may be given by name, as to `getattr`."""
        texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
        if texts:
            types = self._any(node.args)
            self.reads.update((struct, text) for struct in types for text in texts)
        self.generic_visit(node)

    def _bind_name(self, name: str, types: Types) -> None:
        self._scopes[-1][name] = types

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, self.types_of(node.value))
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._bind(node.target, self._named(node.annotation) | self.types_of(node.value))
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._bind(node.target, self.types_of(node.value))
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        types = self.types_of(node.subject)
        for each in ast.walk(node):
            if isinstance(each, ast.MatchAs | ast.MatchStar) and each.name:
                self._bind_name(each.name, types)
        self.generic_visit(node)
