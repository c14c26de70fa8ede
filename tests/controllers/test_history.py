"""The book of a history: resolutions, gaps, limits, and how it is taken up again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from fairway.controllers.history.answers import Asked, answer, part_of
from fairway.controllers.history.book import (
    FLEET,
    OTHERS,
    PARTS_MOST,
    Book,
    NamedParts,
    fewer,
    largest,
    total,
)
from fairway.controllers.history.book_lines import Journal

NOW = 1_800_000_000  # a multiple of 600
GPU = part_of("h100", "nvidia.com/gpu")


def queue(waiting: float = 0, used: float = 0, nominal: float = 16) -> NamedParts:
    return (("", (waiting, 1, 0, used, used)), (GPU, (nominal, used, 0, 0)))


def service(wanted: int, **placed: int) -> NamedParts:
    itself = ("", (float(wanted), float(sum(placed.values())), 0.0))
    return (itself, *((name, (float(count),)) for name, count in placed.items()))


def told(book: Book, *names: str, at: float, series: str = "queues", **more: int) -> dict[str, Any]:
    asked = Asked(
        series=series, names=names, since=more.get("since", 3600), points=more.get("points", 1000)
    )
    return answer(book, asked, at)


def used(found: dict[str, Any], name: str) -> list[float | None]:
    (one,) = [each for each in found["found"] if each["name"] == name]
    values: list[float | None] = one["values"]["used"]
    return values


def test_moments_of_the_last_hour_are_told_as_they_were_seen() -> None:
    book = Book()
    for at in range(6):
        book.see(NOW + 10 * at, {"queues": {"research": queue(used=at)}})
    found = told(book, "research", at=NOW + 50, since=60)
    assert found["step"] == 10
    assert found["times"] == [NOW + 10 * at for at in range(-1, 6)]
    assert used(found, "research") == [None, 0, 1, 2, 3, 4, 5]
    (part,) = found["found"][0]["parts"]
    assert (part["name"], part["resource"]) == ("h100", "nvidia.com/gpu")
    assert part["values"]["nominal"] == [None, 16, 16, 16, 16, 16, 16]


def test_the_mean_of_a_minute_is_told_and_the_most_of_those_who_wait() -> None:
    book = Book()
    for at in range(18):
        book.see(NOW + 10 * at, {"queues": {"research": queue(waiting=at % 6, used=at)}})
    found = told(book, "research", at=NOW + 170, since=43_200)
    assert found["step"] == 60
    assert used(found, "research")[-3:] == [2.5, 8.5, 14.5]
    assert found["found"][0]["values"]["waiting"][-3:] == [5, 5, 5]


def test_fewer_points_cover_the_same_time() -> None:
    book = Book()
    for at in range(360):
        book.see(NOW + 10 * at, {"queues": {"research": queue(used=at // 180)}})
    end = NOW + 3590
    found = told(book, "research", at=end, points=13)
    assert len(found["times"]) <= 13
    assert found["step"] == 300
    assert found["times"][0] <= end - 3600
    assert used(found, "research") == [None, *[0] * 6, *[1] * 6]


def test_a_time_in_which_nobody_looked_is_a_gap() -> None:
    book = Book()
    book.see(NOW, {"queues": {"research": queue(used=8)}})
    book.see(NOW + 60, {"queues": {"research": queue(used=8)}})
    found = used(told(book, "research", at=NOW + 60, since=60), "research")
    assert found == [8, None, None, None, None, None, 8]


@pytest.mark.parametrize("ahead", [1_200, 86_400, 10**9])
def test_a_clock_that_was_wrong_is_set_right_and_the_history_goes_on(ahead: int) -> None:
    book = Book()
    for at in range(6):
        book.see(NOW + 10 * at, {"queues": {"research": queue(used=1)}})
    for at in range(6, 9):
        book.see(NOW + ahead + 10 * at, {"queues": {"research": queue(used=2)}})
    for at in range(9, 500):
        book.see(NOW + 10 * at, {"queues": {"research": queue(used=3)}})
    for since in (3600, 43_200, 604_800):
        found = used(told(book, "research", at=NOW + 5000, since=since), "research")
        assert 3 in found
        assert 2 not in found
    fresh = Book()
    for at in range(9, 500):
        fresh.see(NOW + 10 * at, {"queues": {"research": queue(used=3)}})
    assert told(book, "research", at=NOW + 5000) == told(fresh, "research", at=NOW + 5000)


def test_what_is_gone_is_a_gap_from_then_on() -> None:
    book = Book()
    book.see(NOW, {"queues": {"research": queue(used=8), "product": queue(used=1)}})
    book.see(NOW + 10, {"queues": {"product": queue(used=1)}})
    found = told(book, "research", "product", at=NOW + 10, since=60)
    assert used(found, "research")[-2:] == [8, None]
    assert used(found, "product")[-2:] == [1, 1]


def test_who_is_not_known_is_left_out() -> None:
    assert told(Book(), "nobody", at=NOW)["found"] == []


def test_moments_older_than_seven_days_are_forgotten_and_values_from_then_still_hold() -> None:
    book = Book()
    for hour in range(24 * 9):
        book.see(NOW + 3600 * hour, {"queues": {"research": queue(used=3)}})
    week = told(book, "research", at=NOW + 3600 * 24 * 9 - 3600, since=7 * 86_400)
    assert set(used(week, "research")) == {3, None}
    assert all(len(track.rows) <= track.resolution.rows_most for track in book.tracks)
    assert min(row.at for row in book.tracks[-1].rows) > NOW + 86_400


def test_a_track_that_is_too_large_lets_the_oldest_go_first() -> None:
    book = Book(bytes_most=20_000)
    for at in range(300):
        book.see(NOW + 10 * at, {"queues": {f"q{n}": queue(used=at + n) for n in range(20)}})
    assert all(track.bytes <= 20_000 for track in book.tracks)
    found = used(told(book, "q7", at=NOW + 2990), "q7")
    assert found[-1] == 306
    assert found[1] is None


def test_names_that_come_and_go_do_not_fill_the_book() -> None:
    book = Book(columns_most=200)
    for at in range(500):
        sight = {f"q{at}": queue(used=at), "always": queue(used=7)}
        book.see(NOW + 10 * at, {"queues": sight})
    assert book.count <= 200
    found = told(book, "always", "q499", "q0", at=NOW + 4990)
    assert [item["name"] for item in found["found"]] == ["always", "q499"]
    assert used(found, "always")[-300:] == [7] * 300


def test_past_the_limit_the_largest_names_are_kept_and_the_rest_is_summed() -> None:
    seen = {f"s{n}": service(n, far=n) for n in range(10)}
    kept = largest("services", seen, lambda other: other[0][1][0], most=4)
    assert set(kept) == {"s9", "s8", "s7", OTHERS}
    assert kept[OTHERS] == (("", (21, 21, 0)), ("far", (21,)))


def test_past_the_limit_the_largest_parts_are_kept_and_the_rest_is_summed() -> None:
    parts = fewer(service(3, **{f"c{n:02}": n for n in range(40)}))
    assert len(parts) == PARTS_MOST + 1
    assert parts[-1] == (OTHERS, (float(sum(range(25))),))


def test_several_queues_together_have_no_share() -> None:
    found = total("queues", [queue(used=2), queue(used=3)])
    assert found[1] == (GPU, (32, 5, 0, 0))
    assert found[0][1][3] == 5
    assert found[0][1][2] != found[0][1][2]


class Lines:
    """Keeps lines in memory, as a file would."""

    def __init__(self) -> None:
        self.segments: list[list[bytes]] = []
        self.is_full = False

    def read(self) -> Iterable[Iterable[bytes]]:
        return reversed(self.segments)

    def begin(self, whole: Iterator[bytes]) -> None:
        self.segments.append(list(whole))

    def write(self, line: bytes) -> None:
        self.segments[-1].append(line)


def kept(moments: Iterable[int], lines: Lines, book: Book | None = None) -> Book:
    """A book that is kept, with some moments of queues that come, change and go."""
    journal = Journal(lines)
    book = book or Book()
    journal.begin(book)
    for at in moments:
        sight = {"research": queue(waiting=at % 5, used=at % 7), f"q{at // 40}": queue(used=at)}
        is_renumbered = book.see(NOW + 10 * at, {"queues": sight, "services": {}})
        journal.write(book, NOW + 10 * at, is_renumbered=is_renumbered)
    return book


def everything(book: Book, at: float) -> list[dict[str, Any]]:
    names = ["research", *(f"q{n}" for n in range(40))]
    return [told(book, *names, at=at, since=since) for since in (3600, 43_200, 604_800)]


@pytest.mark.parametrize("until", [3, 250, 777])
def test_a_book_that_is_read_again_tells_the_same(until: int) -> None:
    lines = Lines()
    book = kept(range(until), lines)
    again = Journal(lines).load()
    assert again is not None
    assert everything(again, NOW + 10 * until) == everything(book, NOW + 10 * until)


def test_a_book_goes_on_after_it_was_read_again_as_if_it_had_never_ended() -> None:
    lines = Lines()
    kept(range(700), lines)
    again = Journal(lines).load()
    assert again is not None
    again.clear()
    went_on = kept(range(700, 900), Lines(), again)
    never_ended = kept(range(900), Lines())
    assert everything(went_on, NOW + 9000) == everything(never_ended, NOW + 9000)


def test_what_went_away_while_nobody_looked_is_gone() -> None:
    lines = Lines()
    kept(range(100), lines)
    again = Journal(lines).load()
    assert again is not None
    again.clear()
    again.see(NOW + 2000, {"queues": {"research": queue(used=1)}})
    found = told(again, "q2", at=NOW + 2000)
    assert used(found, "q2")[-1] is None
    assert used(found, "q2").count(None) < len(found["times"])


def test_a_segment_without_its_whole_beginning_gives_way_to_the_one_before() -> None:
    lines = Lines()
    book = kept(range(200), lines)
    Journal(lines).begin(book)
    lines.segments[-1] = lines.segments[-1][:5]
    again = Journal(lines).load()
    assert again is not None
    assert everything(again, NOW + 2000) == everything(book, NOW + 2000)


def test_a_line_that_nobody_can_read_ends_what_is_told() -> None:
    lines = Lines()
    book = kept(range(200), lines)
    lines.segments[-1].append(b'{"type":"moment","at":17')
    again = Journal(lines).load()
    assert again is not None
    assert everything(again, NOW + 2000) == everything(book, NOW + 2000)


def test_a_book_that_was_renumbered_is_kept_anew() -> None:
    lines = Lines()
    book = kept(range(400), lines, Book(columns_most=40))
    assert len(lines.segments) > 1
    again = Journal(lines).load()
    assert again is not None
    assert everything(again, NOW + 4000) == everything(book, NOW + 4000)


def test_a_segment_ends_before_it_takes_long_to_read_it_again() -> None:
    lines = Lines()
    book = kept(range(2_500), lines)
    assert len(lines.segments) == 3
    again = Journal(lines).load()
    assert again is not None
    assert everything(again, NOW + 25_000) == everything(book, NOW + 25_000)


def test_a_fleet_at_rest_takes_hardly_any_room() -> None:
    book = Book()
    sight = {f"q{n}": queue(used=n) for n in range(500)}
    for at in range(360):
        book.see(NOW + 10 * at, {"queues": {FLEET: queue(), **sight}})
    assert book.tracks[0].bytes < 200_000
