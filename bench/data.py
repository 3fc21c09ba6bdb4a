#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's data rooms with the Python tools for the same work: ./dev bench data [--only NAMES]

Each room has a file data_<room>.py in this folder, whose `measure(build, tools)` runs frugal's program and
the tool's on the same data and cores, and yields rows:

    {"name": what was measured, "ours": figure, "theirs": figure, "unit": of both, "than": the tool,
     "ratio": the one that is judged, "bar": its limit, "way": "least" or "most"}

`build` is the folder with frugal's programs, and `tools` the command line of a Python that imports the
tools. Figures are medians; a row without "bar" is shown and not judged.
"""

import importlib
import json
import os
import pathlib
import sys

from common import Failed, add_strict, judge, machine, parser_of

HERE = pathlib.Path(__file__).resolve().parent
ROOMS = sorted(each.stem.removeprefix("data_") for each in HERE.glob("data_*.py"))


def arguments():
    parser = parser_of(__doc__, "")
    parser.add_argument("--only", nargs="+", choices=ROOMS, default=ROOMS, help="rooms to measure")
    parser.add_argument("--wheels", default="", help="folders with the Python tools, as in PYTHONPATH")
    add_strict(parser)
    return parser.parse_args()


def show(room: str, rows: list[dict]) -> None:
    print(f"\n{room}")
    for row in rows:
        figures = f"{row['ours']:.4g} {row['unit']}"
        if row.get("theirs") is not None:
            figures += f", {row['than']} {row['theirs']:.4g} {row['unit']}"
        if row.get("ratio") is not None:
            figures += f", ratio {row['ratio']:.3g}"
        print(f"  {row['name']}: {figures}")


def main() -> int:
    args = arguments()
    if args.wheels:
        os.environ["PYTHONPATH"] = args.wheels
    print(machine())
    met, report = True, {}
    for room in args.only:
        try:
            rows = list(importlib.import_module(f"data_{room}").measure(args.build, [sys.executable]))
        except (Failed, OSError) as error:
            print(f"data, {room}: {error}", file=sys.stderr)
            return 2
        show(room, rows)
        for row in rows:
            if row.get("bar") is not None:
                met = judge(f"{room}, {row['name']}", row["ratio"], row["bar"], row.get("way", "least")) and met
        report[room] = rows
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if args.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
