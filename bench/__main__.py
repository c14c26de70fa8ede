"""`python -m bench [SUITE]... [--scale 0.1]`; without a suite, all of them."""

from __future__ import annotations

import argparse
import importlib

from bench.figures import Report, machine

SUITES = (
    "store",
    "http",
    "core",
    "view",
    "kueue",
    "running",
    "kubernetes",
    "page",
    "history",
    "crowd",
    "scores",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    arguments = parser.parse_args()
    unknown = set(arguments.suites) - set(SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))} (there are {', '.join(SUITES)})")
    print("Machine: " + ", ".join(f"{key} {value}" for key, value in machine().items()))
    for name in arguments.suites or SUITES:
        report = Report()
        importlib.import_module(f"bench.{name}").run(report, scale=arguments.scale)
        report.keep(name)


if __name__ == "__main__":
    main()
