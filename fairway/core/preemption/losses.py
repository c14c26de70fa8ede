"""What is lost of a sweep that must stop: the tasks that run, and none of those that are over."""

from __future__ import annotations


def of_tasks(
    ran: float, *, before: float, running: int, over: int, task_seconds: float | None
) -> float:
    """How long each of the tasks that run now has run, on average, in an attempt of `ran` seconds.

    When each began is not known. In each of the `running` places one task followed another in all
    of the time, that of `before` included: `over` of them to their end, and those that run now for
    half as long as a whole one. Hence running * time = (over + running / 2) * task, and what runs
    now has run for task / 2. None has run for longer than the attempt, nor than a task takes.
    """
    if not over or not running:
        return ran
    average = (before + ran) * running / (2 * over + running)
    return min(ran, average, ran if task_seconds is None else task_seconds)
