"""Records what real peers decide, runs operators in a fleet, writes docs/peers.md, and compares.

python -m tests.peers [WORD ...]      all, or peers named so (kueue, karmada, ocm, operators)
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from tests.kinds.operators import TRAINING
from tests.kinds.operators_recorded import LATER_JOBSET
from tests.kubernetes import binaries
from tests.peers import karmada, kueue, ocm, programs, report

RECORD: dict[str, Callable[[], object]] = {
    "kueue": kueue.record,
    "karmada": karmada.record,
    "ocm": ocm.record,
}
# Tests that need the programs. The last is part of every run, without the operator.
WITH_OPERATORS = ("tests/peers/with_operators.py", "tests/kubernetes/test_native_objects.py")
REPLAYS = "tests/peers/test_replays.py"


def run_operators() -> bool:
    for item in (TRAINING, LATER_JOBSET):
        item.program()
    environment = {**os.environ, "FAIRWAY_PEERS": "1", "FAIRWAY_REQUIRE_KUBERNETES": "1"}
    versions = {"training-operator": TRAINING.module.version, "jobset": LATER_JOBSET.module.version}
    versions["Kubernetes"] = binaries.VERSION
    return report.run_tests("operators", WITH_OPERATORS, versions, environment)


def main(words: Sequence[str]) -> int:
    is_good = True
    with programs.build_cache_deleted():
        for name, record in RECORD.items():
            if not words or name in words:
                record()
        if not words or "operators" in words:
            is_good = run_operators()
    report.write()
    replays = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", REPLAYS)
    is_same = subprocess.run(replays, check=False, cwd=report.ROOT).returncode == 0
    return 0 if is_good and is_same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
