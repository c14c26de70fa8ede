"""Every reason is emitted by a test: some plan gives it, or some hub stores it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fairway.api.reasons import Code

ROOT = Path(__file__).parents[2]
# Together these emit every reason. They are run apart, with all reasons watched.
TESTS = (
    "tests/controllers/test_breakers_run.py::test_a_plan_is_cut_where_a_breaker_opens_in_its_midst",
    "tests/controllers/test_changed_policies_run.py::test_a_policy_that_allows_nothing_stops_nothing",
    "tests/controllers/test_lifecycle.py",
    "tests/controllers/test_planner.py::test_what_decides_nothing_is_read_with_the_next_that_does",
    "tests/controllers/test_submitters_run.py::test_a_label_of_the_namespace_lets_it_start",
    "tests/core/test_device_claims.py::test_what_cannot_be_counted_is_refused",
    "tests/core/test_explain.py::test_a_sentence_says_why",
    "tests/core/test_fleet_policies.py::test_why_names_the_rules_that_a_running_workload_breaks",
    "tests/core/test_limits.py::test_limits_hold",
    "tests/core/test_namespace_quotas.py",
    "tests/core/test_pod_counts.py::test_what_would_not_be_counted_waits",
    "tests/core/test_plans.py",
    "tests/core/test_plans_of_services.py::test_a_group_carries_as_many_copies_as_it_says",
    "tests/core/test_plans_of_services.py::test_a_move_says_that_it_was_requested",
    "tests/core/test_plans_of_services.py::test_no_rule_is_broken_and_the_next_plan_does_not_go_back",
    "tests/core/test_plans_preemption.py",
    "tests/core/test_reservations.py::test_places_are_held",
)


def test_every_reason_is_emitted_by_a_test(tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    plugins = ("-p", "tests.reason_codes", "-p", "no:cacheprovider")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *TESTS],
        cwd=ROOT,
        env={**os.environ, "FAIRWAY_REASONS": str(codes)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    emitted = set(codes.read_text(encoding="utf-8").split())
    assert sorted({code.value for code in Code} - emitted) == [], "no test emits these"
