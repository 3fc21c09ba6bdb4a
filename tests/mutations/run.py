#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults, one at a time, and tests that the checks find each: run.py [name...]

faults.py lists the faults, and for each the check that must find it. The faults are planted in a
copy of the checkout, under .frugal/mutants; the checkout itself is unchanged. First every check
runs without a fault: one that fails then proves nothing. A fault is found if its check fails, and
fails where the list says: a test of ctest or the stage ("test"), or the compiler ("build"). A check
that could not be run, or did not end in time, has found nothing.

Exit codes: 0 all are found; 1 one is not; 2 the list or a check is invalid.
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from faults import FAULTS, Check, Fault, test  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# Downloads and set-up of ./dev, which a run here reuses.
SHARED = ("torch-*", "cuda-*", "sky", "venv-*")
TEST_LIMIT, STAGE_LIMIT = 1200, 5400  # seconds; a stage builds everything that it tests

# Set in the environment of a check: a planted fault removes its old text, so --check, which is
# itself a test of ctest, would find each one.
PLANTED = "FRUGAL_FAULT_IS_PLANTED"

# Output of ./dev and its stages. Any other line of ./dev is a check that could not be run.
BUILD_FAILED = re.compile(r"^dev: building \S+ failed; the compiler's output is above\.", re.M)
TESTS_FAILED = re.compile(
    r"^dev: (?:tests failed; they are listed above|these files are not formatted)", re.M
)
ANY_REFUSAL = re.compile(r"^dev: .*", re.M)
STAGES_FAILED = re.compile(r"^\d+ passed, [1-9]\d* failed$", re.M)
NO_TESTS = "No tests were found"
# The compiler did not get to the sources.
NO_COMPILER = re.compile(
    r"No space left on device|fatal error: Killed|signal terminated program|unable to execute command"
)


@dataclass
class Ran:
    """How a check went: "passed", failed at its "build" or "test", or "could not run"."""

    outcome: str
    seconds: float
    why: str = ""


@dataclass
class Result:
    name: str
    file: str
    check: str
    verdict: str  # "found", "not found", or the fault's or check's own error
    at: str
    seconds: float
    found_by: str = ""


# ---- the copy ------------------------------------------------------------------------------------


def sources_of(root: Path) -> list[str]:
    """Tracked and untracked files, except those that git ignores or that are deleted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    names = (os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)
    return [name for name in names if (root / name).is_file()]


def write(file: Path, content: bytes) -> None:
    """Writes with a new time, so that a build sees it; does nothing if the contents are the same."""
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def copy_sources(root: Path, tree: Path) -> None:
    """Makes the copy equal to the checkout; its build folder and .frugal stay."""
    wanted = set(sources_of(root))
    for name in sorted(wanted):
        write(tree / name, (root / name).read_bytes())
        shutil.copymode(root / name, tree / name)
    for folder, folders, names in os.walk(tree):
        at = Path(folder)
        if at == tree:
            folders[:] = [each for each in folders if each not in ("build", ".frugal")]
        for name in names:
            if str((at / name).relative_to(tree)) not in wanted:
                (at / name).unlink()


def link_downloads(state: Path, mine: Path) -> None:
    """Makes the copy use the contents of the checkout's .frugal; a stage that makes folders in one of
    these gets hard links instead, because it must not write into the checkout's."""
    mine.mkdir(parents=True, exist_ok=True)
    for pattern in SHARED:
        for folder in sorted(state.glob(pattern)):
            target = mine / folder.name
            if target.exists() or folder.name.endswith(".partial"):
                continue
            if folder.name.startswith("cuda-"):
                shutil.copytree(folder, target, symlinks=True, copy_function=os.link)
            else:
                target.symlink_to(folder, target_is_directory=True)


# ---- the checks ----------------------------------------------------------------------------------


def judge(check: Check, rc: int, text: str) -> tuple[str, str]:
    """The outcome of a completed check, and why it could not run, if so."""
    if rc == 0:
        return "passed", ""
    if NO_TESTS in text:
        return "could not run", "no test has such a name"
    refusals = ANY_REFUSAL.findall(text)
    others = [line for line in refusals if not BUILD_FAILED.match(line) and not TESTS_FAILED.match(line)]
    if others:
        return "could not run", others[0]
    if BUILD_FAILED.search(text):
        lack = NO_COMPILER.search(text)
        return ("could not run", lack[0]) if lack else ("build", "")
    if TESTS_FAILED.search(text) or (check.stage and STAGES_FAILED.search(text)):
        return "test", ""
    return "could not run", f"it ended with exit code {rc} and does not say why"


def end_group(process: subprocess.Popen) -> None:
    """Ends a check with all its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def run_check(tree: Path, check: Check, log: Path, limit: float) -> Ran:
    """Runs a check in the copy; its output goes to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(tree / "dev"), "test", *check.arguments],
            cwd=tree, env={**os.environ, PLANTED: "1"}, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            rc = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            end_group(process)
            return Ran("could not run", time.monotonic() - began, f"it took more than {limit:.0f} s")
        except BaseException:
            end_group(process)
            raise
    outcome, why = judge(check, rc, log.read_text(errors="replace"))
    return Ran(outcome, time.monotonic() - began, why)


class Bench:
    """The copy, and the operations on it."""

    def __init__(self, root: Path, limit: float):
        self.limit = limit
        self.mutants = root / ".frugal" / "mutants"
        self.tree = self.mutants / "tree"
        self.mutants.mkdir(parents=True, exist_ok=True)
        self.lock = (self.mutants / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit("mutate: another run plants faults in .frugal/mutants. Wait for its end.")
        copy_sources(root, self.tree)
        link_downloads(root / ".frugal", self.tree / ".frugal")

    def run(self, check: Check, name: str) -> Ran:
        limit = self.limit or (STAGE_LIMIT if check.stage else TEST_LIMIT)
        return run_check(self.tree, check, self.log(name), limit)

    def log(self, name: str) -> Path:
        return self.mutants / "log" / (re.sub(r"[^A-Za-z0-9-]+", "_", name) + ".log")

    def with_fault(self, fault: Fault, check: Check, name: str) -> Ran:
        file = self.tree / fault.file
        before = file.read_bytes()
        write(file, before.replace(fault.old.encode(), fault.new.encode()))
        try:
            return self.run(check, name)
        finally:
            write(file, before)


# ---- verdicts ------------------------------------------------------------------------------------


def faults_of_list(faults: list[Fault], root: Path) -> list[str]:
    """Faults of the list itself, found without running anything."""
    wrong = []
    names = [fault.name for fault in faults]
    for fault in faults:
        if names.count(fault.name) > 1:
            wrong.append(f"{fault.name}: the name is there twice")
        if fault.at not in ("test", "build"):
            wrong.append(f"{fault.name}: at is '{fault.at}', and not 'test' or 'build'")
        if fault.old == fault.new:
            wrong.append(f"{fault.name}: it changes nothing")
        file = root / fault.file
        count = file.read_text(encoding="utf-8").count(fault.old) if file.is_file() else 0
        if count != 1:
            wrong.append(f"{fault.name}: its old text occurs {count} times in {fault.file}")
    return wrong


def verdict_of(fault: Fault, ran: Ran) -> str:
    if ran.outcome == "could not run":
        return f"could not run: {ran.why}"
    if ran.outcome == "passed":
        return "not found"
    if ran.outcome == fault.at:
        return "found"
    if ran.outcome == "build":
        return "a fault of the list: it does not compile, and at is not 'build'"
    return "a fault of the list: it compiles, and at is 'build'"


def look_everywhere(bench: Bench, fault: Fault) -> str:
    """The check that finds a fault which its own check does not; empty if none does."""
    for check in (Check((), stage=False), Check(("--all",), stage=True)):
        ran = bench.with_fault(fault, check, f"{fault.name}-{'all' if check.stage else 'tests'}")
        if ran.outcome in ("build", "test"):
            return str(check)
    return ""


def try_fault(bench: Bench, fault: Fault, thorough: bool) -> Result:
    ran = bench.with_fault(fault, fault.check, fault.name)
    verdict = verdict_of(fault, ran)
    found_by = str(fault.check) if verdict == "found" else ""
    if verdict == "not found" and thorough:
        found_by = look_everywhere(bench, fault)
    at = ran.outcome if ran.outcome in ("build", "test") else ""
    return Result(fault.name, fault.file, str(fault.check), verdict, at, round(ran.seconds, 1), found_by)


def words(fault: Fault, result: Result, log: Path) -> str:
    if result.verdict == "found":
        return f"found by '{result.found_by}' in {result.seconds:.0f} s, at its {result.at}"
    head, _, rest = result.verdict.partition(":")
    text = f"{head.upper()}{':' if rest else ''}{rest} ('{result.check}', {result.seconds:.0f} s). {fault.breaks}"
    if result.found_by:
        text += f" But '{result.found_by}' finds it."
    return f"{text}\n  {log}"


def sound_checks(bench: Bench, faults: list[Fault]) -> bool:
    """Runs every check without a fault. Builds several tests at once before, on all cores, and no
    more than ./dev builds file by file."""
    checks = list(dict.fromkeys(fault.check for fault in faults))
    regexes = [check.arguments[1] for check in checks if not check.stage]
    for at in range(0, len(regexes) if len(regexes) > 1 else 0, 6):
        bench.run(test("|".join(f"({regex})" for regex in regexes[at : at + 6])), f"build-{at}")
    sound = True
    for check in checks:
        ran = bench.run(check, f"baseline-{check}")
        state = "passes" if ran.outcome == "passed" else f"FAILS ({ran.why or 'at its ' + ran.outcome})"
        say(f"without a fault '{check}' {state} in {ran.seconds:.0f} s")
        if ran.outcome != "passed":
            say(f"  {bench.log(f'baseline-{check}')}")
            sound = False
    return sound


def say(text: str) -> None:
    print(text, flush=True)


def table(results: list[Result]) -> None:
    say("")
    for each in results:
        state = each.verdict.split(":")[0]
        say(f"{each.name:32} {state:16} {each.at:6} {each.seconds:6.0f} s  {each.check}")
    found = sum(each.verdict == "found" for each in results)
    say(f"{found} of {len(results)} faults found")


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of faults; all if none is given")
    parser.add_argument("--list", action="store_true", help="only say which faults there are")
    parser.add_argument("--check", action="store_true", help="only look whether the list fits the sources")
    parser.add_argument("--thorough", action="store_true",
                        help="try a fault that its check does not find with every other check")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--limit", type=float, default=0, metavar="SECONDS",
                        help=f"for one check; {TEST_LIMIT} for tests and {STAGE_LIMIT} for stages")  # fmt: skip
    return parser.parse_args(arguments)


def main() -> int:
    options = options_of(sys.argv[1:])
    unknown = sorted(set(options.names) - {fault.name for fault in FAULTS})
    if unknown:
        say(f"mutate: there is no fault '{unknown[0]}'. --list has them all.")
        return 2
    faults = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    if options.list:
        for fault in faults:
            say(f"{fault.name:32} {fault.breaks}\n{'':32} {fault.file}; {fault.check}, at its {fault.at}")
        return 0
    if options.check and PLANTED in os.environ:
        say("a fault may be planted here: the list is not looked at")
        return 0
    wrong = faults_of_list(faults, ROOT)
    for line in wrong:
        say(f"mutate: {line}")
    if wrong:
        return 2
    if options.check:
        say(f"each of {len(faults)} faults has one place in the sources")
        return 0
    bench = Bench(ROOT, options.limit)
    if not sound_checks(bench, faults):
        say("mutate: a check that fails without a fault proves nothing. Make it pass first.")
        return 2
    results = []
    for fault in faults:
        results.append(try_fault(bench, fault, options.thorough))
        say(f"{fault.name}: {words(fault, results[-1], bench.log(fault.name))}")
    table(results)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in results], indent=2) + "\n")
    if any(each.verdict not in ("found", "not found") for each in results):
        return 2
    return 0 if all(each.verdict == "found" for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
