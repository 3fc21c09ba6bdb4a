# SPDX-License-Identifier: Apache-2.0
"""The command frugal-step: exports what a function of a Python file describes."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import os
import sys
import traceback

import torch

from .errors import ExportError
from .export import export_step
from .refusal import describe

_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def _job(source: str) -> dict:
    """The arguments of export_step() that FILE.py[:FUNCTION] returns."""
    path, _, name = source.partition(":")
    name = name or "job"
    if not os.path.isfile(path) or not path.endswith(".py"):
        raise ExportError("there is no such file of Python", where=path, why="the command calls a function of a Python file",
                          fix="Name one, as in model.py or model.py:job.")
    # As `python model.py` would find what lies beside it.
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("frugal_step_job", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    with _reporting(path):
        spec.loader.exec_module(loaded)
    function = getattr(loaded, name, None)
    if not callable(function):
        raise ExportError(f"the file has no function '{name}'", where=path,
                          why="the command calls it for the module, the loss and the example batch",
                          fix=f"Write def {name}(): return dict(module=..., loss=..., example_batch=...).")
    with _reporting(f"{path}, in {name}()"):
        job = function()
    missing = [key for key in ("module", "loss", "example_batch") if not isinstance(job, dict) or key not in job]
    if missing:
        raise ExportError(f"{name}() does not return {', '.join(missing)}", where=path,
                          why="it returns a dictionary of export_step's arguments",
                          fix="Return dict(module=..., loss=..., example_batch=...).")
    return job


@contextlib.contextmanager
def _reporting(where: str):
    """Says in one sentence what failed in the user's file."""
    try:
        yield
    except ExportError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename in where]
        raise ExportError("the file cannot be run", where=where + (f", line {lines[-1]}" if lines else ""),
                          why=f"{type(error).__name__}: {describe(error)}",
                          fix="Run it with python to see the whole error.") from error


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="frugal-step", description="Exports a training step for frugal::StepPackage. FUNCTION, by default `job`, "
        "takes no argument and returns a dictionary of export_step's arguments.")
    parser.add_argument("source", metavar="FILE.py[:FUNCTION]")
    parser.add_argument("folder")
    parser.add_argument("--autocast", choices=sorted(_TYPES))
    parser.add_argument("--memory-budget", type=float, help="0 to 1")
    parser.add_argument("--march", choices=("x86-64-v3", "x86-64-v4", "native"), default=None)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--train-outputs", action="store_true", default=None)
    given = vars(parser.parse_args())
    source, folder = given.pop("source"), given.pop("folder")
    if given["autocast"]:
        given["autocast"] = _TYPES[given["autocast"]]
    try:
        job = dict(_job(source))
        unknown = sorted(set(job) - set(inspect.signature(export_step).parameters) | set(job) & {"folder"})
        if unknown:
            raise ExportError(f"the function returns {', '.join(unknown)}", where=source,
                              why="export_step has no such argument, or the command line gives it",
                              fix="Leave it out.")
        job |= {name: value for name, value in given.items() if value is not None}
        export_step(folder=folder, **job)
    except (ExportError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
