#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects faults into a save at every call to the file system: run.py --program P --shim S TEST

shim.cpp counts the calls and makes the k-th fail; this iterates over every k, and checks each time
what the next start finds. TEST is one of kill, fail, persist, resume, order, self.

FRUGAL_FAULT_EVERY=N tries every N-th only, starting with another one in each situation: ./dev test
takes a few, CI more, and ./dev bench faults and ./dev test --release take all.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Thousands of saves with a dozen fsyncs each: in memory if possible. A kill loses nothing that the
# kernel has, so the disk makes no difference here; `order` checks what the disk needs.
MEMORY = next((m for m in ("/dev/shm",) if os.access(m, os.W_OK)), None)
SAVING = ("create,open,write,pwrite,writev,fsync,fdatasync,close,fallocate,ftruncate,flock,rename,"
          "renameat2,link,mkdir,unlink,rmdir")  # fmt: skip
READING = "open,read,stat,fstat,readdir"
LARGE = (9 << 20) + 321  # bytes: twice a block that bypasses the page cache, and no whole sectors
EVERY = int(os.environ.get("FRUGAL_FAULT_EVERY", "1"))
MOST_OF_ALL = 5000  # calls: a save with more never ends


@dataclass(frozen=True)
class Scenario:
    name: str
    before: tuple[int, ...]  # steps saved before
    step: int  # the save with the fault
    keep: int = 0
    always: str = ""  # calls that the file system lacks
    model: int = 3000  # bytes: small enough to be fast, large enough that a write can be torn

    @property
    def old(self) -> int | None:
        return self.before[-1] if self.before else None


SCENARIOS = (
    Scenario("the first save of a run", (), 10),
    Scenario("a save after another", (10,), 20),
    Scenario("a step saved again", (10,), 10),
    Scenario("a step saved again where names cannot be exchanged", (10,), 10, 0, "renameat2:EINVAL"),
    Scenario("a save that deletes older ones", (10, 20), 30, 1),
    Scenario("a save where there is no flock", (10,), 20, 0, "flock:EOPNOTSUPP"),
    Scenario("a save of a large file, past the page cache", (10,), 20, 0, "", LARGE),
)


class Sample:
    """Selects the cases to run: every N-th, over all situations of a test."""

    def __init__(self):
        self.seen = -1

    def takes(self, always: bool = False) -> bool:
        self.seen += 1
        return always or self.seen % EVERY == 0


SAMPLE = Sample()


class Bench:
    """A folder with the program, the shim and a run in a given state."""

    def __init__(self, program: Path, shim: Path, folder: Path, scenario: Scenario):
        self.program, self.shim, self.scenario = program, shim, scenario
        self.under = folder / "disk"
        self.run = self.under / "run"
        self.log = folder / "calls"
        self.template = folder / "template"
        self.under.mkdir()
        for step in scenario.before:
            self.start("save", self.run, step)
        shutil.copytree(self.under, self.template)

    def start(self, *arguments: object, fault: dict[str, object] | None = None, rc: int = 0):
        """Runs the program; with a fault any exit code is accepted."""
        env = dict(os.environ)
        if fault is not None or self.scenario.always:
            env["LD_PRELOAD"] = str(self.shim)
            env["FRUGAL_FAULT_UNDER"] = str(self.under)
            if self.scenario.always:
                env["FRUGAL_FAULT_ALWAYS"] = self.scenario.always
            env.update({f"FRUGAL_FAULT_{key.upper()}": str(value) for key, value in (fault or {}).items()})
        done = subprocess.run(
            [self.program, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60
        )
        if fault is None and done.returncode != rc:
            raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
        return done

    def reset(self) -> None:
        shutil.rmtree(self.under)
        shutil.copytree(self.template, self.under)
        self.log.unlink(missing_ok=True)

    def broken_save(self, **fault: object):
        self.reset()
        return self.start("save", self.run, self.scenario.step, self.scenario.keep, self.scenario.model,
                          fault={"log": self.log, "calls": SAVING, **fault})  # fmt: skip

    def calls(self) -> list[tuple[str, str]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(call, path) for _, call, path in (line.split(" ", 2) for line in lines)]

    def check(self) -> dict:
        return json.loads(self.start("check", self.run).stdout)

    def all_calls(self) -> list[tuple[str, str]]:
        done = self.broken_save()
        assert done.returncode == 0, done.stderr
        calls = self.calls()
        assert 20 < len(calls) < MOST_OF_ALL, f"{len(calls)} calls: the shim does not count"
        return calls

    def look(self, context: str) -> dict:
        """The next start must find only whole checkpoints, and a further save must work."""
        found = self.check()
        allowed = {self.scenario.old, self.scenario.step}
        assert found["step"] in allowed, f"{context}: found {found}"
        assert found["damaged"] == 0 and found["others"] == [], f"{context}: found {found}"
        self.start("save", self.run, 1000)
        assert self.check()["step"] == 1000, f"{context}: the next save did not work"
        return found


def kill(bench: Bench) -> int:
    calls = bench.all_calls()
    tried, seen_new = 0, False
    for k, (call, path) in enumerate(calls, 1):
        for act in ("kill", "tear") if call.startswith(("write", "pwrite")) else ("kill",):
            # The last call comes after the commit, as one of the tested calls must.
            if not SAMPLE.takes(always=k == len(calls)):
                continue
            context = f"{bench.scenario.name}: {act} at {k} of {len(calls)}, {call} {path}"
            done = bench.broken_save(at=k, do=act)
            assert done.returncode == -signal.SIGKILL, f"{context}: exit code {done.returncode}"
            assert len(bench.calls()) == k, f"{context}: {len(bench.calls())} calls were made"
            found = bench.look(context)
            is_new = found["step"] == bench.scenario.step and bench.scenario.step != bench.scenario.old
            assert is_new or not seen_new, f"{context}: the new checkpoint is gone again"
            seen_new = is_new
            tried += 1
    if bench.scenario.step != bench.scenario.old:
        assert seen_new, "no kill came after the commit"
    return tried


ERRORS = {
    "ENOSPC": "No space left on device",
    "EIO": "Input/output error",
    "EDQUOT": "Disk quota exceeded",
    "EROFS": "Read-only file system",
    "EACCES": "Permission denied",
}
MUST_BE_RETRIED = {"write", "fsync", "open", "create", "fallocate", "close", "flock"}
# Calls whose failure may be ignored: clean-up, texts for people, or calls that file systems may
# lack and whose result is checked elsewhere.
MAY_BE_IGNORED = {"unlink", "rmdir", "pwrite", "ftruncate", "close", "open", "rename", "fallocate",
                  "renameat2"}  # fmt: skip


def fail(bench: Bench) -> int:
    calls, tried = bench.all_calls(), 0
    committed = [k for k, (call, path) in enumerate(calls, 1)
                 if call == "fsync" and path.endswith("/checkpoints")][0]  # fmt: skip
    for act in [*ERRORS, "EINTR", "short", "EINVAL"]:
        for k, (call, path) in enumerate(calls, 1):
            if act == "short" and not call.startswith(("write", "pwrite")):
                continue
            # The errno of a file system that refuses writes past the page cache.
            past_cache = bench.scenario.model == LARGE and path.endswith("/model.safetensors")
            if act == "EINVAL" and not (past_cache and call == "write"):
                continue
            if not SAMPLE.takes():
                continue
            context = f"{bench.scenario.name}: {act} at {k} of {len(calls)}, {call} {path}"
            done = bench.broken_save(at=k, do=act)
            context += f": exit code {done.returncode}, {done.stderr.strip()}"
            assert done.returncode in (0, 3), context
            if act == "short" or (act == "EINTR" and call in MUST_BE_RETRIED):
                assert done.returncode == 0, context
            # The last write is less than a sector: it goes through the cache.
            if act == "EINVAL" and calls[k][0] == "write":
                assert done.returncode == 0, context
            if act in ERRORS and done.returncode == 0:
                assert call in MAY_BE_IGNORED or (call == "fsync" and k > committed), f"{context}: the failure was not noticed"
            if done.returncode == 3 and act in ERRORS:
                whose = r"(?:; '[^']+' has owner \d+, group \d+ and mode \d+, and this process runs as user \d+)?"
                sentence = rf"frugal: .* \(.+\): {ERRORS[act]}{whose}\. [A-Z].*\."
                assert re.fullmatch(sentence, done.stderr.strip()), f"{context}: no clear error"
            # A failed fsync is never repeated: the save has failed, whatever came after. Only the
            # fsync of a deletion, which comes after the save, is merely reported.
            if call == "fsync" and act in ERRORS:
                deletes = bench.scenario.keep != 0 and k > committed
                assert done.returncode == (0 if deletes else 3), f"{context}: fsync was retried into success"
                again = [p for c, p in bench.calls()[k:] if c == "fsync" and p == path]
                assert not again, f"{context}: fsync was called again"
            whole = bench.start("check", bench.run).stdout
            steps = json.loads(whole)["whole"]
            if done.returncode == 0:
                assert bench.scenario.step in steps, f"{context}: nothing was saved"
            elif call == "fsync" and k <= committed and bench.scenario.step != bench.scenario.old:
                assert bench.scenario.step not in steps, f"{context}: an unsafe save was left"
            if done.returncode == 3 and bench.scenario.old is not None and k <= committed:
                assert bench.scenario.old in steps, f"{context}: the old one is gone"
            bench.look(context)
            tried += 1
    return tried


def persist(bench: Bench) -> int:
    """From the k-th call on everything of a kind fails: the disk is full, dead or read-only."""
    space = "create,mkdir,write,fallocate"
    change = "create,mkdir,write,pwrite,fallocate,ftruncate,rename,renameat2,unlink,rmdir,link"
    every = change + ",open,fsync,close,flock"
    tried = 0
    for act, names in (("ENOSPC", space), ("EROFS", change), ("EIO", every)):
        bench.broken_save(calls=names)
        calls = bench.calls()
        for k, (call, path) in enumerate(calls, 1):
            if not SAMPLE.takes():
                continue
            context = f"{bench.scenario.name}: {act} from {k} of {len(calls)} on, {call} {path}"
            done = bench.broken_save(calls=names, at=k, do=act, times=0)
            assert done.returncode in (0, 3), f"{context}: exit code {done.returncode}: {done.stderr}"
            assert done.returncode == 0 or done.stderr.startswith("frugal: "), context
            found = bench.look(context)
            if done.returncode == 0:
                assert found["step"] == bench.scenario.step, f"{context}: nothing was saved"
            tried += 1
    return tried


def resume(bench: Bench) -> int:
    """A start that cannot read must report that: it must not miss a checkpoint and train again."""
    if bench.scenario.old is None:
        return 0
    tried = 0
    check = lambda **fault: bench.start("check", bench.run, fault={"calls": READING, "log": bench.log, **fault})
    bench.reset()
    assert json.loads(check().stdout)["step"] == bench.scenario.old
    calls = bench.calls()
    assert {"open", "read", "stat", "readdir"} <= {c for c, _ in calls}, calls
    for act in ("EIO", "EACCES", "EMFILE", "ESTALE", "EINTR"):
        for times in (1, 0):
            if act == "EINTR" and times == 0:
                continue  # would rightly be retried for ever
            for k, (call, path) in enumerate(calls, 1):
                if not SAMPLE.takes():
                    continue
                context = f"{bench.scenario.name}: {act} at {k} ({times} times), {call} {path}"
                bench.reset()
                done = check(at=k, do=act, times=times)
                context += f": exit code {done.returncode}, {done.stderr.strip()}"
                tried += 1
                assert done.returncode in (0, 3), context
                if done.returncode != 0:
                    continue
                found = json.loads(done.stdout)
                newest = found["step"] == bench.scenario.old
                assert newest or (act == "EIO" and found["damaged"] > 0), f"{context}: {found}"
    return tried


def order(bench: Bench) -> int:
    """The order that survives a power cut: nothing gets its name before its contents are on disk, and
    nothing is removed before the new name is on disk."""
    calls = bench.all_calls()
    where = lambda call, match: [k for k, (c, p) in enumerate(calls) if c == call and match(p)]
    inside = lambda p: "/.tmp-step-%08d-" % bench.scenario.step in p
    named = [k for k, (c, p) in enumerate(calls)
             if c in ("rename", "renameat2") and "/step-%08d" % bench.scenario.step in p][-1]  # fmt: skip
    files = {p for c, p in calls[:named] if c == "create" and inside(p)}
    assert len(files) == 4, f"{files}"
    for file in files:
        writes, syncs = where("write", file.__eq__), where("fsync", file.__eq__)
        assert writes and syncs and max(writes) < min(syncs) < named, f"{file}: {calls}"
    manifest = next(f for f in files if f.endswith("/manifest.json"))
    created = {file: where("create", file.__eq__)[0] for file in files}
    assert max(created.values()) == created[manifest], "the manifest is not the last file"
    assert max(k for f in files - {manifest} for k in where("fsync", f.__eq__)) < created[manifest]
    folder = str(Path(manifest).parent)
    assert created[manifest] < where("fsync", folder.__eq__)[0] < named, "the folder is not synced"
    if not bench.scenario.before:
        for made in (bench.run, bench.run / "checkpoints"):
            begun = where("mkdir", str(made).__eq__)[0]
            synced = any(begun < k < named for k in where("fsync", str(made.parent).__eq__))
            assert synced, f"{made} is not synced: {calls}"
    above = [k for k in where("fsync", lambda p: p.endswith("/checkpoints")) if k > named]
    assert above, "the new name is not synced"
    gone = [k for k in where("unlink", lambda p: "/checkpoints/" in p) if k > named]
    assert all(above[0] < k for k in gone), "something is removed before the new name is safe"
    if bench.scenario.keep:
        assert len(above) == 2 and gone and above[1] < gone[0], "deletion is not synced first"
    return len(files) + 3


def self_test(bench: Bench) -> int:
    """A program that cuts corners must be detected; otherwise the tests above prove nothing."""
    calls = bench.all_calls()
    first_write = next(k for k, (call, path) in enumerate(calls, 1) if call == "write")
    done = bench.broken_save(at=first_write, do="kill")
    assert done.returncode == -signal.SIGKILL
    left = [p.name for p in (bench.run / "checkpoints").iterdir() if p.name.startswith(".tmp-")]
    assert len(left) == 1, f"a kill in the middle left {left}"
    done = bench.broken_save(at=first_write, do="ENOSPC")
    assert done.returncode == 3 and "No space left" in done.stderr, done.stderr
    assert bench.broken_save(at=len(calls) + 1, do="kill").returncode == 0
    done = bench.broken_save(at=1, do="NONSENSE")
    assert done.returncode == 121 and "NONSENSE" in done.stderr, done.stderr
    done = bench.broken_save(calls="write", **{"from": "manifest.json"})
    assert [c for c, _ in bench.calls()] == ["write"], bench.calls()
    # `check` must detect a checkpoint that is not whole.
    bench.reset()
    bench.start("save", bench.run, 50)
    model = bench.run / "checkpoints" / "step-00000050" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    try:
        bench.look("cut off")
    except AssertionError:
        return 6
    raise AssertionError("a damaged checkpoint was not seen")


def main() -> int:
    tests = {"kill": kill, "fail": fail, "persist": persist, "resume": resume, "order": order, "self": self_test}
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--shim", type=Path, required=True)
    parser.add_argument("test", choices=tests)
    options = parser.parse_args()
    total = 0
    for scenario in SCENARIOS if options.test != "self" else SCENARIOS[1:2]:
        with tempfile.TemporaryDirectory(prefix="frugal-fault-", dir=MEMORY) as folder:
            bench = Bench(options.program.resolve(), options.shim.resolve(),
                          Path(folder).resolve(), scenario)  # fmt: skip
            try:
                tried = tests[options.test](bench)
            except AssertionError as failure:
                print(f"{options.test}: {failure}", file=sys.stderr)
                return 1
            print(f"{options.test}: {scenario.name}: {tried} passed")
            total += tried
    print(f"{options.test}: {total} in all")
    return 0 if total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
