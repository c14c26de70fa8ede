"""From paths to resources and verbs.

`/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUBRESOURCE` and its shorter forms name a resource;
everything else is a plain path. The verb follows from the method and from the path.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.meta import GROUP
from fairway.server.wire.exchange import Request

# What follows a namespace's name is either one of these or a kind inside the namespace.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_ON_MANY = {"get": "list", "delete": "deletecollection"}
# Two-way streams are opened by GET, and do more than read.
OPENED = frozenset({("workloads", "exec"), ("workloads", "portforward"), ("clusters", "stream")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about. A plain path has no plural."""

    path: str
    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()  # what follows a subresource
    is_below: bool = False  # the path is below a namespace

    @property
    def is_resource(self) -> bool:
        return bool(self.plural)


def target_of(request: Request) -> Target:
    """The target of a request."""
    parts = request.path.strip("/").split("/")
    group, version, rest = "", "", []
    if "" in parts:
        pass  # the part after an empty name must not take its place
    elif len(parts) >= 3 and parts[0] == "api":
        version, rest = parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    if not rest:
        return Target(path=request.path, verb=request.method.lower())
    is_watch = bool(request.flag("watch"))
    if rest[0] == "watch" and len(rest) > 1:  # the old form, before the parameter
        rest, is_watch = rest[1:], True
    return _resource_target(request, group, version, rest, is_watch=is_watch)


def _resource_target(
    request: Request, group: str, version: str, rest: list[str], *, is_watch: bool
) -> Target:
    namespace = ""
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES)
    ):
        namespace, rest = rest[1], rest[2:]
    is_below = bool(namespace)
    plural, name = rest[0], rest[1] if len(rest) > 1 else ""
    if plural == "namespaces" and not group and not is_below:
        namespace = name
    subresource = rest[2] if len(rest) > 2 else ""
    return Target(
        path=request.path,
        verb=(
            "create"
            if group == GROUP and (plural, subresource) in OPENED and request.method == "GET"
            else _verb(request, name, is_watch=is_watch)
        ),
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        rest=tuple(rest[3:]),
        is_below=is_below,
    )


def _verb(request: Request, name: str, *, is_watch: bool) -> str:
    """The verb by method and name alone: rights are checked first, and validity later."""
    verb = _VERBS.get(request.method, request.method.lower())
    if is_watch and request.method == "GET":
        return "watch"
    return verb if name else _ON_MANY.get(verb, verb)
