"""The objects that a command addresses: `KIND [NAME...]`, `KIND/NAME...`, `KIND,KIND`, or files.

Words are resolved with the server's own catalogue, so every kind it serves can be named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from fairway.cli.manifests import read_files
from fairway.cli.session import Failure, Session
from fairway.client.catalogue import Served
from fairway.client.wire import Object, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One object, or all of a kind when it has no name."""

    served: Served
    name: str = ""
    namespace: str | None = None

    @property
    def label(self) -> str:
        """`workload.fairway.dev/train`, as results name an object."""
        return f"{self.served.qualified_singular}/{self.name}"


def parse(session: Session, words: Sequence[str]) -> list[Target]:
    """The targets that the words of a command line name."""
    if not words:
        raise click.UsageError("Say which kind, such as `workloads`, or `workload/train`.")
    if any("/" in word for word in words):
        return [_parse_slash(session, word) for word in words]
    kinds = [served for word in words[0].split(",") for served in expand(session, word)]
    if len(words) == 1:
        return [Target(served=served, namespace=_home(session, served)) for served in kinds]
    if len(kinds) > 1:
        raise Failure("names need one kind each: write KIND/NAME for several kinds")
    return [
        Target(served=kinds[0], name=name, namespace=_home(session, kinds[0])) for name in words[1:]
    ]


def expand(session: Session, word: str) -> list[Served]:
    """The kinds that a word names, which may be a category such as `fairway` or `all`."""
    catalogue = session.client.catalogue()
    if not word:
        raise Failure("a kind is missing before or after a comma")
    return [item for item in catalogue.expand(word) if "list" in item.verbs] or [
        catalogue.resolve(word)
    ]


def from_files(session: Session, filenames: Sequence[str], recursive: bool) -> list[Target]:
    """The objects that files name."""
    return [of_object(session, obj) for obj in read_files(filenames, recursive=recursive)]


def of_object(session: Session, obj: Object) -> Target:
    """The object that a manifest names, with its namespace resolved."""
    served = session.client.kind_of(obj)
    metadata = obj.get("metadata") or {}
    name, own = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
    if not name:
        raise Failure(f"a {served.kind} has no metadata.name")
    if served.namespaced and own and session.namespace_given not in ("", own):
        raise Failure(
            f'the namespace from the provided object "{own}" does not match the namespace '
            f'"{session.namespace_given}"; pass --namespace={own} or leave it out'
        )
    namespace = (own or session.namespace) if served.namespaced else None
    return Target(served=served, name=name, namespace=namespace)


def find_targets(
    session: Session, targets: Sequence[Target], *, labels: str = "", fields: str = ""
) -> list[Target]:
    """The targets with names; those without are replaced by what the selectors match."""
    result: list[Target] = []
    for target in targets:
        if target.name:
            result.append(target)
            continue
        scope = Scope(namespace=target.namespace, labels=labels, fields=fields)
        for item in session.client.list(target.served, scope=scope).items:
            metadata = item["metadata"]
            result.append(
                Target(
                    served=target.served,
                    name=metadata["name"],
                    namespace=metadata.get("namespace"),
                )
            )
    return result


def _parse_slash(session: Session, word: str) -> Target:
    kind, slash, name = word.partition("/")
    if not slash or not kind or not name or "/" in name:
        raise Failure(f"write every object as KIND/NAME; this one is not: {word}")
    served = session.client.resolve(kind)
    return Target(served=served, name=name, namespace=_home(session, served))


def _home(session: Session, served: Served) -> str | None:
    return session.namespace if served.namespaced else None
