"""Read-only sign-ins: what they may request, and the mark that identifies them.

Such a sign-in may only read and ask questions, whatever rights its user has. It may not read
secrets, nor works, which carry secrets, since a secret could be used to change something elsewhere;
nor open a stream into a pod.
"""

from __future__ import annotations

from dataclasses import replace

from fairway.api.errors import Forbidden
from fairway.api.meta import GROUP
from fairway.server.access.identity import Identity
from fairway.server.questions.questions import SUBRESOURCES
from fairway.server.routes import OPENED, Target

MARK = "fairway.dev/look-only"
_READS = frozenset({"get", "list", "watch", "head"})
_SECRET = frozenset({("", "secrets"), (GROUP, "works")})
_QUESTIONS = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
    }
)


def mark_read_only(identity: Identity) -> Identity:
    """The same user, marked read-only."""
    return replace(identity, extra={**identity.extra, MARK: ("true",)})


def is_marked(identity: Identity) -> bool:
    return MARK in identity.extra


def confirm(target: Target) -> None:
    """Raises Forbidden for anything but reads and questions."""
    if not _is_looking(target):
        raise Forbidden(
            "this sign-in is for looking only: nothing can be changed with it", details={}
        )


def _is_looking(target: Target) -> bool:
    if target.verb in _READS:
        return (target.group, target.plural) not in _SECRET
    if target.verb != "create":
        return False
    asked = (target.plural, target.subresource)
    is_question = (
        target.group == GROUP
        and target.subresource in SUBRESOURCES.get(target.plural, ())
        and asked not in OPENED
    )
    return is_question or (target.group, target.plural) in _QUESTIONS
