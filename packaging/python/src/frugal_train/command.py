# SPDX-License-Identifier: Apache-2.0
"""The command frugal-train: trains what a TOML file says."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from .errors import TrainError
from .recipe import read_job
from .run import train


def main() -> int:
    parser = argparse.ArgumentParser(prog="frugal-train", description="Trains a step package with a recipe in TOML.")
    parser.add_argument("recipe", help="package, data, valid, batch, [settings] and [policies.\"Optimize<AdamW>\"]")
    parser.add_argument("--frugal", help="where frugal is installed; default: FRUGAL_PREFIX, or /usr/local")
    parser.add_argument("--quiet", action="store_true", help="print the result alone, as one line of JSON")
    arguments = parser.parse_args()
    try:
        job = read_job(arguments.recipe)
        result = train(job.package, job.data, job.policies, valid=job.valid, batch=job.batch, weights=job.weights,
                       frugal=arguments.frugal, progress=not arguments.quiet, **job.settings)
    except TrainError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(dataclasses.asdict(result), default=str))
    return 75 if result.preempted else 0


if __name__ == "__main__":
    sys.exit(main())
