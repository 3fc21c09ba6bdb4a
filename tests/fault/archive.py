#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects faults into moves to cold storage and back, at every call to the file system:
archive.py --program P --shim S TEST

Like run.py for a save: shim.cpp counts the calls and makes the k-th fail. Whatever happens, each
checkpoint is here or there or both, whole; and the next move finishes the work and leaves no
garbage. TEST is one of kill, fail, restore; FRUGAL_FAULT_EVERY as in run.py.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from run import SAMPLE

MEMORY = next((m for m in ("/dev/shm",) if os.access(m, os.W_OK)), None)
CHANGING = ("create,open,write,pwrite,fsync,close,rename,renameat2,mkdir,unlink,rmdir")
LAST = 3  # steps; the last is the newest and stays
OLD = set(range(1, LAST))
# Calls whose failure may be ignored: clean-up, and texts of the lock for people.
MAY_BE_IGNORED = {"unlink", "rmdir", "pwrite", "close", "open"}


class Bench:
    """A folder with a run, its cold storage, and copies of both to restart from."""

    def __init__(self, program: Path, shim: Path, folder: Path, how: str, moved: bool):
        self.program, self.shim, self.how = program, shim, how
        self.disk = folder / "disk"
        self.run, self.cold = self.disk / "run", self.disk / "cold"
        self.log, self.template = folder / "calls", folder / "template"
        self.cold.mkdir(parents=True)
        self.start("save", self.run, LAST)
        if moved:
            self.must("move")
        shutil.copytree(self.disk, self.template)

    def start(self, *arguments: object, fault: dict[str, object] | None = None):
        env = dict(os.environ)
        if fault is not None:
            env["LD_PRELOAD"] = str(self.shim)
            env["FRUGAL_FAULT_UNDER"] = str(self.disk)
            env["FRUGAL_FAULT_CALLS"] = CHANGING
            env["FRUGAL_FAULT_LOG"] = str(self.log)
            env.update({f"FRUGAL_FAULT_{key.upper()}": str(value) for key, value in fault.items()})
        return subprocess.run([self.program, *map(str, arguments)], env=env, capture_output=True,
                              text=True, timeout=60)  # fmt: skip

    def must(self, verb: str, *rest: object) -> str:
        done = self.start(verb, self.run, self.cold, self.how, *rest)
        assert done.returncode == 0, f"{verb}: exit code {done.returncode}: {done.stderr}"
        return done.stdout

    def broken(self, verb: str, *rest: object, **fault: object):
        shutil.rmtree(self.disk)
        shutil.copytree(self.template, self.disk)
        self.log.unlink(missing_ok=True)
        return self.start(verb, self.run, self.cold, self.how, *rest, fault=fault)

    def calls(self, verb: str, *rest: object) -> list[tuple[str, str]]:
        done = self.broken(verb, *rest)
        assert done.returncode == 0, done.stderr
        lines = [line.split(" ", 2) for line in self.log.read_text().splitlines()]
        assert 20 < len(lines) < 5000, f"{len(lines)} calls: the shim does not count"
        return [(call, path) for _, call, path in lines]

    def check(self) -> tuple[set[int], set[int], list[str]]:
        found = json.loads(self.must("check"))
        assert len(found["there"]) == len(set(found["there"])), found
        return set(found["here"]), set(found["there"]), found["others"]

    def look(self, context: str) -> None:
        """Every checkpoint exists somewhere, and a further move behaves normally."""
        here, there, _ = self.check()
        assert LAST in here and here | there >= OLD | {LAST}, f"{context}: {here} here, {there} there"
        self.must("move")
        here, there, others = self.check()
        assert (here, there, others) == ({LAST}, OLD, []), f"{context}: {here}, {there}, {others}"


def kill(bench: Bench) -> int:
    calls, tried = bench.calls("move"), 0
    for k, (call, path) in enumerate(calls, 1):
        for act in ("kill", "tear") if call.startswith(("write", "pwrite")) else ("kill",):
            if not SAMPLE.takes():
                continue
            context = f"{bench.how}: {act} at {k} of {len(calls)}, {call} {path}"
            done = bench.broken("move", at=k, do=act)
            # A command counts its own calls, and if it is killed that is an error of ours.
            killed = done.returncode == -signal.SIGKILL
            assert killed or (bench.how == "command" and done.returncode in (0, 3)), (
                f"{context}: exit code {done.returncode}: {done.stderr}"
            )
            bench.look(context)
            tried += 1
    return tried


def fail(bench: Bench) -> int:
    calls, tried = bench.calls("move"), 0
    for act in ("ENOSPC", "EIO", "EACCES", "EINTR", "short"):
        for k, (call, path) in enumerate(calls, 1):
            if act == "short" and not call.startswith(("write", "pwrite")):
                continue
            if not SAMPLE.takes():
                continue
            context = f"{bench.how}: {act} at {k} of {len(calls)}, {call} {path}"
            done = bench.broken("move", at=k, do=act)
            context += f": exit code {done.returncode}, {done.stderr.strip()}"
            assert done.returncode in (0, 3, 4), context
            if act == "short":
                assert done.returncode == 0 or bench.how == "command", context
            if done.returncode == 3:
                assert done.stderr.startswith("frugal: "), context
            elif done.returncode == 4:
                assert done.stderr.startswith("stayed: "), context
            elif act not in ("EINTR", "short") and bench.how == "folder":
                assert call in MAY_BE_IGNORED, f"{context}: the failure was not noticed"
            bench.look(context)
            tried += 1
    return tried


def restore(bench: Bench) -> int:
    calls, tried = bench.calls("restore", 1), 0
    for act in ("kill", "ENOSPC", "EIO"):
        for k, (call, path) in enumerate(calls, 1):
            if not SAMPLE.takes():
                continue
            context = f"{bench.how}: restore, {act} at {k} of {len(calls)}, {call} {path}"
            done = bench.broken("restore", 1, at=k, do=act)
            assert done.returncode in (-signal.SIGKILL, 0, 3), f"{context}: {done.returncode}"
            here, there, _ = bench.check()
            assert here in ({LAST}, {1, LAST}) and there == OLD, f"{context}: {here}, {there}"
            if done.returncode == 0:
                assert 1 in here, f"{context}: it is not here"
            bench.must("restore", 1)
            assert bench.check()[0] == {1, LAST}, context
            bench.look(context)
            tried += 1
    return tried


def main() -> int:
    tests = {"kill": kill, "fail": fail, "restore": restore}
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--shim", type=Path, required=True)
    parser.add_argument("test", choices=tests)
    options = parser.parse_args()
    total = 0
    for how in ("folder", "command"):
        with tempfile.TemporaryDirectory(prefix="frugal-fault-", dir=MEMORY) as folder:
            bench = Bench(options.program.resolve(), options.shim.resolve(), Path(folder).resolve(),
                          how, options.test == "restore")  # fmt: skip
            try:
                tried = tests[options.test](bench)
            except AssertionError as failure:
                print(f"{options.test}: {failure}", file=sys.stderr)
                return 1
            print(f"{options.test}: {how}: {tried} passed")
            total += tried
    return 0 if total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
