"""Proofs that a hub made a decision.

An agent may create works in the namespace of its cluster, so that a hub that has lost them gets
them back. A proof shows that the hub decided what such a work says: a code over the decision, made
with a secret that no agent has. A replica that shares the secret, and a hub that is restored or
empty but has kept it, recognise each other's proofs.
"""

from __future__ import annotations

import base64
import hmac
from hashlib import sha256

import msgspec

from fairway.api.names import PLACEMENT, PROOF
from fairway.api.work import Work

_PURPOSE = b"fairway proofs of works"


class Proofs:
    """Makes and checks proofs."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, _PURPOSE, sha256)

    def of(self, work: Work) -> str:
        """The proof of what a work says: which workload, where, which attempt and placement."""
        spec, workload = work.spec, work.spec.workload
        decision = (
            spec.cluster,
            workload.namespace,
            workload.name,
            workload.uid,
            spec.attempt,
            work.metadata.annotations.get(PLACEMENT, ""),
        )
        code = hmac.digest(self._key, msgspec.json.encode(decision), sha256)
        return base64.urlsafe_b64encode(code).decode().rstrip("=")

    def holds(self, work: Work) -> bool:
        """Whether a work has the proof of what it says."""
        given = work.metadata.annotations.get(PROOF, "")
        return hmac.compare_digest(given.encode(), self.of(work).encode())
