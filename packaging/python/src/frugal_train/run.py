# SPDX-License-Identifier: Apache-2.0
"""train(): compiles a recipe, starts it as a process, and loads the weights back."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping

import torch
from torch import nn

from frugal_step.tensor_file import read_tensors, write_tensors

from .errors import TrainError
from .program import compiled
from .recipe import check_names, policies_of

# What Settings takes from a recipe.
SETTINGS = {"epochs": int, "steps": int, "seed": int, "run_dir": str}


@dataclasses.dataclass
class Result:
    """The result of a fit."""

    epochs: int
    steps: int
    samples: int
    seconds: float
    train_loss: float
    stopped_by: str
    preempted: bool  # saved before its end: call train() again with the same run_dir to resume
    metrics: dict[str, float]  # of the last validation
    warnings: list[str]
    weights: pathlib.Path | None  # model.safetensors, with Python's names; None: only in the module


def train(
    package: str | os.PathLike,
    data: Mapping[str, torch.Tensor] | str | os.PathLike,
    policies: Mapping[str, Mapping[str, object]],
    *,
    valid: Mapping[str, torch.Tensor] | str | os.PathLike | None = None,
    batch: int = 32,
    module: nn.Module | None = None,
    weights: str | os.PathLike | None = None,
    frugal: str | os.PathLike | None = None,
    progress: bool = True,
    **settings,
) -> Result:
    """Trains a step package with a recipe, in a process of its own.

    package   a folder that export_step() has written
    data      tensors [samples, ...] by the names of the package's fields, or a safetensors file of them
    policies  {"Optimize<AdamW>": {"lr": 1e-3}, "ClipNorm<>": {}}: names as in C++, options by their members.
              Other numbers need no new compilation
    valid     as data, for Validate and what watches it
    batch     samples per micro-batch
    module    the weights are loaded into it when the training ends
    weights   the folder for model.safetensors; default: weights/ in run_dir, or none
    frugal    where frugal is installed; default: the environment variable FRUGAL_PREFIX
    settings  run_dir, epochs, steps, seed: as frugal::Settings
    """
    say = _printer(progress)
    prefix = _prefix(frugal)
    recipe = policies_of(policies)
    check_names(recipe, prefix / "include")
    _check_settings(settings)
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise TrainError(f"batch is {batch!r}", where="batch", why="a micro-batch has a sample or more",
                         fix="Give a whole number above 0.")
    kept = weights or (os.path.join(settings["run_dir"], "weights") if settings.get("run_dir") else None)
    if kept is None and module is None:
        raise TrainError("the trained weights would be lost", where="train()",
                         why="there is no module to load them into, and no folder",
                         fix="Give module=, weights= or run_dir=.")
    program = compiled(recipe, valid is not None, prefix, say)
    with tempfile.TemporaryDirectory(prefix="frugal-train-") as held:
        folder = pathlib.Path(held)
        out = pathlib.Path(kept or os.path.join(held, "weights")).absolute()
        options: dict[str, object] = {"package": os.path.abspath(package), "batch": batch, "weights": str(out),
                                      "result": str(folder / "result.json"), "data": _file(data, folder / "data")}
        options |= {name: value for name, value in settings.items() if value is not None}
        if valid is not None:
            options["valid"] = _file(valid, folder / "valid")
        if module is not None:
            write_tensors(module.state_dict(), folder / "start.safetensors")
            options["start"] = str(folder / "start.safetensors")
        for number, policy in enumerate(recipe):
            options |= {f"{number}.{member}": value for member, value in policy.options.items()}
        (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
        result = _run(program, folder, progress)
        trained = read_tensors(out / "model.safetensors")
        if module is not None:
            module.load_state_dict(trained)
    return Result(**result, weights=None if kept is None else out / "model.safetensors")


def _run(program: pathlib.Path, folder: pathlib.Path, progress: bool) -> dict:
    """Starts the program, which has this one's terminal, and waits for it."""
    said: list[str] = []
    with subprocess.Popen([str(program), str(folder / "options.json")], stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                said.append(line)
                if progress:
                    sys.stderr.write(line)
            process.wait()
        except KeyboardInterrupt:
            # The terminal has sent it the same signal: it saves.
            process.wait()
            raise
    # 75: preempted, and saved. 130: Ctrl-C, and saved. 74 has a result too, but its end is not on disk.
    if process.returncode in (0, 75, 130) and (folder / "result.json").exists():
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    sentence = next((line for line in reversed(said) if line.startswith("frugal: ")), "")
    raise TrainError(
        "the training failed",
        where=f"exit code {process.returncode}",
        why=sentence.removeprefix("frugal: ").strip().rstrip(".") or "the program said nothing",
        fix="Mend that, and call train() again: with Checkpoint and the same run_dir it goes on.",
    )


def _file(data, path: pathlib.Path) -> str:
    if isinstance(data, (str, os.PathLike)):
        if not os.path.exists(data):
            raise TrainError("there is no file of data", where=os.fspath(data), why="train() reads a safetensors file",
                             fix="Name one, or give a dictionary of tensors.")
        return os.path.abspath(data)
    lengths = {name: len(tensor) if tensor.dim() else 0 for name, tensor in data.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise TrainError("the tensors of the data have no common number of samples", where="data",
                         why=", ".join(f"{name} has {count}" for name, count in lengths.items()) or "there are none",
                         fix="Give tensors [samples, ...] of one length.")
    write_tensors(data, path.with_suffix(".safetensors"))
    return str(path.with_suffix(".safetensors"))


def _check_settings(settings) -> None:
    for name, value in settings.items():
        if name not in SETTINGS:
            raise TrainError(f"there is no setting '{name}'", where="settings",
                             why=f"the settings are {', '.join(SETTINGS)}", fix="Name one of these.")
        if value is not None and (not isinstance(value, (SETTINGS[name], os.PathLike)) or isinstance(value, bool)):
            raise TrainError(f"{name} is {value!r}", where="settings", why=f"it is {SETTINGS[name].__name__}",
                             fix="Give such a value.")
        if SETTINGS[name] is int and value is not None and value < 0:
            raise TrainError(f"{name} is {value}", where="settings", why="it counts", fix="Give 0 or more.")
    if settings.get("run_dir") is not None:
        settings["run_dir"] = os.path.abspath(settings["run_dir"])


def _prefix(given) -> pathlib.Path:
    prefix = pathlib.Path(given or os.environ.get("FRUGAL_PREFIX") or "/usr/local").absolute()
    if not (prefix / "include" / "frugal" / "step.hpp").exists():
        raise TrainError(
            "frugal is not installed there",
            where=str(prefix),
            why="a recipe is compiled against its headers",
            fix="Install it with ./dev install PREFIX, and name PREFIX: frugal=..., --frugal or FRUGAL_PREFIX.",
        )
    return prefix


def _printer(progress):
    def say(text):
        if progress:
            print(f"frugal_train: {text}", file=sys.stderr, flush=True)

    return say
