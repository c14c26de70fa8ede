"""`fairway plan --explain`: why one workload waits, and what would let it start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fairway.cli import terminal
from fairway.cli.session import Failure

if TYPE_CHECKING:
    from fairway.core.snapshot import Facts


def show(facts: Facts, key: str, output: str) -> int:
    """Prints the explanation of one workload: a sentence and its reasons, or JSON."""
    # The core is much larger than the client; only this command loads it.
    from fairway.api.explanations import score_words  # noqa: PLC0415 - as above
    from fairway.api.reasons import sentence as reason_sentence  # noqa: PLC0415 - as above
    from fairway.core.explain.explain import explain, sentence  # noqa: PLC0415 - as above

    if "/" not in key:
        key = f"default/{key}"
    if key not in facts.workloads:
        known = ", ".join(sorted(facts.workloads)[:5])
        raise Failure(f"no workload {key} in the files given (there are: {known})")
    explanation = explain(facts, key)
    if output == "json":
        terminal.write([json.dumps(explanation.render(), indent=2)])
        return 0
    terminal.write([f"{key} {sentence(explanation)}."])
    if explanation.ranking:
        rows = (f"  - {item.cluster} {item.total}: {score_words(item.points)}"
                for item in explanation.ranking)  # fmt: skip
        terminal.write(["", "Clusters by score, best first:", *rows])
    if explanation.state == "Waits":
        texts = dict.fromkeys(reason_sentence(reason) for reason in explanation.reasons)
        place = f"{explanation.position} of {explanation.waiting}"
        terminal.write(["", f"Position {place} in queue {explanation.queue}."])
        terminal.write(["What was tried:", *(f"  - {text}" for text in texts)])
    return 0
