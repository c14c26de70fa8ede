"""`fairway cost`: accounts as a table, for programs, and for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest
from cli_outcome import Fairway

from fairway.client import Client

RESOURCE = "costaccounts.costs.fairway.dev"
SINCE = ("--since", "2026-09-01", "--until", "2026-09-30")


def row(use: str, hours: int, dollars: int = 0, **who: str) -> dict[str, object]:
    return {"use": use, "gpuSeconds": str(hours * 3600), "money": str(dollars), **who}


def account(day: str, *rows: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "costs.fairway.dev/v1alpha1",
        "kind": "CostAccount",
        "metadata": {"name": day},
        "spec": {"until": f"{day}T23:00:00Z", "currency": "EUR", "rows": list(rows)},
    }


@pytest.fixture
def accounts(client: Client) -> Iterator[None]:
    train = {"namespace": "vision", "team": "alpha", "queue": "research", "workload": "train"}
    chat = {"namespace": "chat", "queue": "serving", "workload": "chat"}
    here, there = ({"cluster": item, "flavor": "h100"} for item in ("hangzhou", "cloud"))
    several = [
        account(
            "2026-09-01",
            row("Used", 100, 200, **train, **here),
            row("Lost", 10, 20, **train, **here),
            row("Idle", 40, 80, **here),
            row("Lent", 5, queue="serving", flavor="h100"),
        ),
        account(
            "2026-09-02",
            row("Used", 50, 150, **train, **there),
            row("Used", 8, 16, **chat, **here),
        ),
        account("2026-08-31", row("Used", 1000, 1000, **train, **here)),
    ]
    for item in several:
        client.create(item)
    yield
    for entry in several:
        client.delete(RESOURCE, str(entry["metadata"]["name"]))


@pytest.mark.usefixtures("accounts")
class TestCost:
    def test_queues_are_shown_with_what_they_used_lost_and_lent(self, fairway: Fairway) -> None:
        found = fairway("cost", *SINCE)
        assert found.code == 0
        lines = [line.split() for line in found.out.splitlines()]
        assert lines[0] == ["From", "2026-09-01", "to", "2026-09-30,", "in", "EUR"]
        assert lines[2:] == [
            ["QUEUE", "GPU-HOURS", "COST", "LOST", "LOST", "COST", "LENT"],
            ["research", "150.00", "350.00", "10.00", "20.00", "0.00"],
            ["serving", "8.00", "16.00", "0.00", "0.00", "5.00"],
            ["total", "158.00", "366.00", "10.00", "20.00", "5.00"],
        ]

    def test_clusters_are_shown_with_what_stood_idle(self, fairway: Fairway) -> None:
        found = fairway("cost", "--by", "cluster", *SINCE)
        lines = [line.split() for line in found.out.splitlines()[2:]]
        assert lines[0][-3:] == ["IDLE", "IDLE", "COST"]
        assert [line[0] for line in lines[1:]] == ["hangzhou", "cloud", "-", "total"]
        assert lines[1] == ["hangzhou", "108.00", "216.00", "10.00", "20.00", "40.00", "80.00"]

    @pytest.mark.parametrize(
        ("by", "names"),
        [
            ("workload", {"vision/train": "350.00", "chat/chat": "16.00"}),
            ("namespace", {"vision": "350.00", "chat": "16.00"}),
            ("team", {"alpha": "350.00"}),
            ("flavor", {"h100": "366.00"}),
        ],
    )
    def test_programs_get_the_same_by_whatever_is_asked_for(
        self, fairway: Fairway, by: str, names: dict[str, str]
    ) -> None:
        found = json.loads(fairway("cost", "--by", by, *SINCE, "-o", "json").out)
        costs = {line["name"]: line["usedCost"] for line in found["lines"]}
        assert costs.items() >= names.items()
        assert (found["currency"], found["total"]["usedCost"]) == ("EUR", "366.00")
        assert found["total"]["idleGpuHours"] == "40.00"

    def test_a_spreadsheet_gets_a_line_for_each(self, fairway: Fairway) -> None:
        found = fairway("cost", "--by", "workload", *SINCE, "-o", "csv")
        lines = list(csv.DictReader(io.StringIO(found.out)))
        assert [line["workload"] for line in lines] == ["vision/train", "chat/chat", "-"]
        assert lines[0]["usedGpuHours"] == "150.00"
        assert lines[0]["currency"] == "EUR"


def test_days_without_an_account_are_said_to_have_none(fairway: Fairway) -> None:
    found = fairway("cost", "--since", "2001-01-01", "--until", "2001-01-02")
    assert found.code == 0
    assert "No accounts from 2001-01-01 to 2001-01-02" in found.out + found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "yesterday"), "is not a duration"),
        (("--since", "2026-02-01", "--until", "2026-01-01"), "is before --since"),
        (("--by", "colour"), "is not one of"),
    ],
)
def test_misuse_says_what_is_wrong(fairway: Fairway, words: tuple[str, ...], message: str) -> None:
    found = fairway("cost", *words)
    assert found.code != 0
    assert message in found.err
