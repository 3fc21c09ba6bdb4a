#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/gpu: run.py --bin FOLDER --out FOLDER [--only NAME]

Each in a separate process, with a time limit and a log: if one hangs or crashes, the others continue.
The most important ones come first; those that do not fit into the time are not run.
OUT/tests.json has the results, for bench/gpu_report.py; it is written after every case.
Exit codes: 0 all passed; 1 some failed or were not run; 77 all were started, and found no GPU.
"""

import argparse
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import visit

HERE = Path(__file__).resolve().parent
TITLE = re.compile(r"^// Case (\d+): (.*)$")
# By the value of the result: with two minutes, 1, 3 and 4.
ORDER = (1, 3, 4, 2, 6, 15, 16, 17, 7, 9, 8, 5, 10, 12, 11, 18, 13)
NO_GPU = 77
NO_CASE = re.compile(r"test cases: +0 ")
NO_SANITIZER = "there is no compute-sanitizer"
SANITIZED = ("graph", "device_depth")  # their first test each, under compute-sanitizer
FIRST_LIMIT = 120  # seconds: it reads LibTorch from the disk
SANITIZED_LIMIT = 150.0  # seconds
CUT_OFF = "the run was cut off"


def cases(folder: Path) -> list[dict]:
    """The programs' names and titles, from the first lines of their sources."""
    found = []
    for source in sorted(folder.glob("*.cpp")):
        lines = source.read_text().splitlines()[:8]
        for at, line in enumerate(lines):
            if match := TITLE.match(line):
                title = [match[2]]
                for more in lines[at + 1:]:
                    if not more.startswith("// ") or more.startswith("// Shapes:"):
                        break
                    title.append(more[3:])
                found.append({"name": source.stem, "case": int(match[1]), "title": " ".join(title),
                              "command": [f"gpu_{source.stem}"]})
    for name in SANITIZED:
        found.append({"name": f"memcheck_{name}", "case": 13,
                      "title": f"compute-sanitizer finds nothing in gpu_{name}'s first test.",
                      # LibTorch makes CUDA calls that may fail, and continues: no memory error.
                      "command": ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "1",
                                  "--report-api-errors", "no", f"gpu_{name}", "--last=1"],
                      "limit": SANITIZED_LIMIT, "environment": {"FRUGAL_SLOWED": "1"}})
    return sorted(found, key=lambda each: (ORDER.index(each["case"]), each["name"]))


TOOLKITS = os.pathsep.join(str(folder) for toolkit in sorted(Path("/usr/local").glob("cuda*"))
                           for folder in (toolkit / "bin", toolkit / "compute-sanitizer"))


def told_by(log: Path) -> str:
    """The most informative line of a log about the failure."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    for line in lines:
        if "ERROR" in line or "error while loading" in line:
            return line[:200]
    return lines[-1][:200] if lines else "it said nothing"


def command_of(case: dict, binaries: Path) -> tuple[list[str], str]:
    """The command with absolute paths, and why it cannot be run."""
    line = []
    for word in case["command"]:
        if word.startswith("gpu_"):
            program = binaries / word
            if not program.exists():
                return [], f"{word} was not built"
            line.append(str(program))
        elif word == "compute-sanitizer":
            found = shutil.which(word) or shutil.which(word, path=TOOLKITS)
            if not found:
                return [], NO_SANITIZER
            line.append(found)
        else:
            line.append(word)
    return line, ""


# Settings of a machine that a case does not tolerate: another allocator, other arithmetic.
UNWANTED = ("CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE",
            "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING",
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
IN_MEMORY = Path("/dev/shm")
BYTES_OF_CHECKPOINTS = 4 << 30


def environment(case: dict) -> dict:
    """The files of a run are in memory if there is space: a slow disk is not what these cases test."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > BYTES_OF_CHECKPOINTS:
        kept["TMPDIR"] = str(IN_MEMORY)
    return kept | case.get("environment", {})


def run(case: dict, binaries: Path, out: Path, limit: float) -> dict:
    said = {key: case[key] for key in ("name", "case", "title")} | {"seconds": 0.0, "why": ""}
    line, missing = command_of(case, binaries)
    if missing:
        return said | {"result": "not run", "why": missing}
    log = out / f"{case['name']}.log"
    began = time.monotonic()
    with log.open("w") as file:
        try:
            process = visit.start(line, stdout=file, stderr=subprocess.STDOUT, cwd=out,
                                  env=environment(case))
        except OSError as error:
            return said | {"result": "failed", "why": f"it does not start: {error}"}
        code = visit.code_of(process, limit)
    if code is None:
        return said | {"result": "failed", "seconds": limit,
                       "why": f"it had not ended after {limit:.0f} s; see {log.name}"}
    said["seconds"] = round(time.monotonic() - began, 1)
    if code == NO_GPU:
        return said | {"result": "not run", "why": "no GPU found"}
    if code < 0:
        name = signal.Signals(-code).name
        return said | {"result": "failed", "why": f"{name}: {told_by(log)}; see {log.name}"}
    text = log.read_text(errors="replace")
    if NO_CASE.search(text):
        return said | {"result": "failed", "why": f"no case of this name ran; see {log.name}"}
    if case["case"] == 13 and "ERROR SUMMARY: 0 errors" in text and "[doctest] test cases:" in text:
        # The tool is slow: timing checks are disabled under it.
        return said | {"result": "passed",
                       "why": "" if code == 0 else "clean; its own checks failed under the tool"}
    # A test may exit the process with 0 in the middle: only the end prints this.
    if code == 0 and "all cases ran" in text:
        return said | {"result": "passed"}
    return said | {"result": "failed", "why": f"exit code {code}: {told_by(log)}; see {log.name}"}


def machine() -> dict:
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=20)
        name, driver = answer.stdout.splitlines()[0].split(", ")
    except (OSError, subprocess.TimeoutExpired, IndexError, ValueError):
        name, driver = "", ""
    return {"device": name, "driver": driver, "date": datetime.date.today().isoformat()}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bin", type=Path, required=True, help="folder of the programs")
    arguments.add_argument("--out", type=Path, required=True, help="folder for logs and results")
    arguments.add_argument("--sources", type=Path, default=HERE, help=argparse.SUPPRESS)
    arguments.add_argument("--seconds", type=float, default=450, help="for all of them")
    arguments.add_argument("--limit", type=float, default=60, help="for one, in seconds")
    arguments.add_argument("--only", action="append", help="one case by its name or number")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    chosen = [case for case in cases(options.sources)
              if not options.only or {case["name"], str(case["case"])} & set(options.only)]
    if not chosen:
        print("there is no such case; the names are those of tests/gpu", file=sys.stderr)
        return 1
    told = [{key: case[key] for key in ("name", "case", "title")}
            | {"result": "not run", "seconds": 0.0, "why": CUT_OFF} for case in chosen]
    found = machine() | {"cases": told}
    visit.write(found, options.out / "tests.json")
    for at, case in enumerate(chosen):
        left = options.seconds - (time.monotonic() - began)
        if left < 5:
            told[at]["why"] = "the time was used up"
            continue
        limit = case.get("limit", options.limit)
        if at == 0:
            limit = max(limit, FIRST_LIMIT)
        limit = min(limit, left)
        result = told[at] = run(case, options.bin.resolve(), options.out, limit)
        print(f"{result['result']:8} {result['name']:22} {result['seconds']:6.1f} s  {result['why']}",
              flush=True)
        visit.write(found, options.out / "tests.json")
    visit.write(found, options.out / "tests.json")
    count = {what: sum(each["result"] == what for each in told)
             for what in ("passed", "failed", "not run")}
    print(f"\n{count['passed']} passed, {count['failed']} failed, {count['not run']} not run")
    reasons = {each["why"] for each in told}
    if "no GPU found" in reasons:
        print("no GPU found")
        # Everything that should run was started, and reported.
        return NO_GPU if reasons <= {"no GPU found", NO_SANITIZER} else 1
    return 0 if count["passed"] == len(told) else 1


if __name__ == "__main__":
    sys.exit(main())
