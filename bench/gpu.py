# SPDX-License-Identifier: Apache-2.0
"""Measures frugal's CudaGraph on a GPU, compared with eager steps, a hand-made CUDA graph and PyTorch.

Each case runs in its own process with a time limit and a log. A case that hangs or crashes is
reported and left out of later rounds; the others continue. The rounds of a job are interleaved and
their order rotates; torch.compile, compiled steps, Lightning and Accelerate, which no bar needs, have one round each.
The results file is written after every case; gpu_report.py makes the tables of docs/gpu.md from it.

Exit codes: 0 all bars hold; 1 a bar does not hold or a case failed; 77 no GPU found.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "gpu"))
import visit  # noqa: E402

NOT_RUN = 77
OUT_OF_TIME = "out of time"

# And warm-up.
STEPS = {"mlp": (6000, 500), "convnet": (2000, 200), "transformer": (500, 50), "large": (60, 10)}
LIMIT, COMPILE_LIMIT = 60.0, 120.0  # seconds for one case
EXPECTED, COMPILE_EXPECTED = 12.0, 40.0  # likewise, before its first round
PROBE_LIMIT = 180.0  # likewise; the first program reads LibTorch's libraries from the disk

# The ones that the bars compare come first, in case time is short.
QUICK = [("frugal", "graph"), ("hand", "hand"), ("frugal", "eager"), ("frugal", "eager+device")]
QUICK += [("torch", "cudagraph"), ("frugal", "graph+device"), ("torch", "eager")]
COMPILE = ("torch", "compile")
PACKAGE = ("package", "package+graph")
PACKAGE_BF16 = ("package", "package+bf16+graph")
COMPILED = ("compile", "compile+bf16", PACKAGE[1], PACKAGE_BF16[1])
# What each lever does for a model that fills the GPU.
LEVERS = [("frugal", how) for how in ("graph+bf16", "bf16", "graph+fp8", "graph+int8")]
LEVERS += [("frugal", how) for how in ("bf16+recompute", "bf16+offload")]
LARGE = [("frugal", "eager"), ("frugal", "graph"), *LEVERS, ("torch", "eager"), ("torch", "bf16")]
CASES = {
    "mlp": [*QUICK, COMPILE, PACKAGE, ("lightning", "lightning"), ("accelerate", "accelerate")],
    "convnet": [*QUICK, COMPILE, PACKAGE],
    "transformer": [*QUICK, COMPILE, PACKAGE],
    "large": [*LARGE, ("torch", "compile+bf16"), PACKAGE_BF16],
}
EAGER = [("frugal", "eager"), ("frugal", "eager+device")]
BY_HAND = [("hand", "hand"), ("torch", "cudagraph")]

OVER_EAGER, OVER_HAND = 3.0, 1.10
LOSS_SPREAD = 1.25  # as in peers.py: another order of the data ends some percent apart
# The loss is 6.43 before the first step, and cannot fall far below 1.75 without memorising: a fifth
# of the words are random.
MOST_LOSS = {"transformer": 2.5}

FIGURES = (
    "seconds_per_step",
    "host_seconds_per_step",
    "launch_seconds_per_step",
    "replay_seconds_per_step",
    "peak_allocated",
    "peak_reserved",
    "loss",
)


# ---- one case ------------------------------------------------------------------------------------


def command_of(args: argparse.Namespace, job: str, by: str, how: str) -> list[str]:
    steps, warmup = STEPS[job]
    if args.steps:
        steps, warmup = args.steps, max(5, args.steps // 10)
    flags = ["--job", job, "--steps", str(steps), "--warmup", str(warmup), "--device", args.device]
    if by in ("frugal", "hand"):
        return [str(args.bin / "bench_gpu"), "--how", how, *flags]
    return [args.python, str(HERE / "gpu" / f"peers_{by}.py"), "--how", how, *flags]


def environment(caches: str, binaries: pathlib.Path = pathlib.Path()) -> dict[str, str]:
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "LC_ALL": "C"}
    # Kept from round to round: compiling is not measured.
    kept = {"TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor", "TRITON_CACHE_DIR": f"{caches}/triton"}
    packages = {"FRUGAL_PACKAGES": f"{caches}/packages", "FRUGAL_BENCH_GPU": str(binaries / "bench_gpu")}
    return os.environ | threads | quiet | kept | packages


def run(
    command: list[str], log: pathlib.Path, limit: float, env: dict[str, str]
) -> tuple[int, str]:
    """Exit code and standard output; the code of a case that exceeded its limit is 124. Through files:
    a child that outlives its parent would keep a pipe open."""
    told = log.with_suffix(".out")
    with open(told, "w") as out, open(log, "w") as err:
        err.write(" ".join(command) + "\n")
        err.flush()
        try:
            process = visit.start(command, stdout=out, stderr=err, env=env)
        except OSError as error:
            err.write(f"{error}\n")
            return 127, ""
        code = visit.code_of(process, limit)  # and kills its group: torch.compile's workers too
    return 124 if code is None else code, told.read_text(errors="replace")


def last_json(text: str) -> dict | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def tail_of(log: pathlib.Path) -> str:
    """The last lines of a log, without its first line, the command."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()[1:]]
    lines = [line for line in lines if line]
    return " | ".join(lines[-3:])[-300:]


def finite(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def judge(code: int, text: str, log: pathlib.Path, limit: float, how: str) -> tuple[str, str, dict]:
    """Result, reason and figures of one round of a case."""
    line = last_json(text)
    if code == NOT_RUN:
        return "not run", (line or {}).get("not_run", text.strip() or "no reason given"), {}
    if code == 124:
        return "failed", f"ran past its limit of {limit:.0f} s", {}
    if code != 0:
        return "failed", f"ended with exit code {code}: {tail_of(log) or 'no message'}", {}
    if line is None or "seconds_per_step" not in line:
        return "failed", "printed no figures", {}
    for name in ("seconds_per_step", "loss"):
        if not finite(line.get(name)):
            return "failed", f"answers with {name} {line.get(name)}", line
    if "graph" in how.split("+") and not (line["captures"] >= 1 and line["replays"] >= line["steps"]):
        advice = "; ".join(line["advice"]) or "no advice"
        counts = f"{line['captures']} captures, {line['replays']} replays of {line['steps']} steps"
        return "failed", f"the step was not replayed ({counts}): {advice}", line
    return "passed", "", line


class Case:
    def __init__(self, job: str, by: str, how: str):
        self.job, self.by, self.how = job, by, how
        self.result, self.why = "not run", OUT_OF_TIME
        self.lines: list[dict] = []
        self.quick = (by, how) in QUICK + LARGE
        self.expected = COMPILE_EXPECTED if how in COMPILED else EXPECTED

    @property
    def name(self) -> str:
        return (
            f"{self.job} {self.by} {self.how}" if self.by != self.how else f"{self.job} {self.by}"
        )

    @property
    def limit(self) -> float:
        return COMPILE_LIMIT if self.how in COMPILED else LIMIT

    def over(self, rounds: int) -> bool:
        """Whether it has had its rounds, or ended for a reason that another round would repeat."""
        if len(self.lines) >= (rounds if self.quick else 1):
            return True
        return self.result != "passed" and self.why != OUT_OF_TIME

    def measure(self, args, round_: int, left: float, logs: pathlib.Path, env: dict) -> None:
        limit = min(self.limit, max(10.0, left))
        name = f"{self.job}-{self.by}-{self.how}-{round_ + 1}".replace("+", "-and-")
        log = logs / f"{name}.log"
        begin = time.monotonic()
        code, text = run(command_of(args, self.job, self.by, self.how), log, limit, env)
        # A first round fills caches of the disk and of torch.compile; a later one shows the normal
        # speed.
        self.expected = time.monotonic() - begin
        if code == 124 and limit < self.limit:
            if not self.lines:
                self.result, self.why = "not run", OUT_OF_TIME
            return
        self.result, self.why, line = judge(code, text, log, limit, self.how)
        if self.result == "passed":
            self.lines.append(line)

    def figures(self) -> dict:
        found = {}
        for name in FIGURES:
            values = [line[name] for line in self.lines if line.get(name) is not None]
            if values:
                middle = statistics.median(values)
                found[name] = {"median": middle, "min": min(values), "max": max(values)}
        return found

    def told(self) -> dict:
        last = self.lines[-1] if self.lines else {}
        return {
            "name": self.name,
            "job": self.job,
            "by": self.by,
            "how": self.how,
            "result": self.result,
            "why": self.why,
            "figures": self.figures(),
            "captures": last.get("captures"),
            "replays": last.get("replays"),
            "advice": last.get("advice", []),
            "rounds": self.lines,
        }


# ---- bars ----------------------------------------------------------------------------------------


def figure(cases: list[dict], job: str, by: str, how: str, name: str) -> float | None:
    for case in cases:
        if (case["job"], case["by"], case["how"]) == (job, by, how) and case["result"] == "passed":
            return case["figures"].get(name, {}).get("median")
    return None


def bar(name: str, text: str, value: float | None, holds: bool, why: str = "") -> dict:
    result = "not run" if value is None else "passed" if holds else "failed"
    return {"name": name, "bar": text, "value": value, "result": result, "why": why}


def fastest(cases: list[dict], job: str, ways: list[tuple[str, str]]) -> float | None:
    """Seconds of a step; None unless all ways have figures, because a missing one might be the fastest."""
    found = [figure(cases, job, *way, "seconds_per_step") for way in ways]
    return None if None in found else min(found)


def bars_of(cases: list[dict]) -> list[dict]:
    graph = figure(cases, "mlp", "frugal", "graph", "seconds_per_step")
    eager, by_hand = fastest(cases, "mlp", EAGER), fastest(cases, "mlp", BY_HAND)
    missing = "a case of it has no figures"
    over_eager = eager / graph if graph and eager else None
    over_hand = graph / by_hand if graph and by_hand else None
    bars = [
        bar(
            "mlp: CudaGraph, compared with eager steps (the faster of with DevicePrefetch and without)",
            f"at least {OVER_EAGER:g} times as fast",
            over_eager,
            over_eager is not None and over_eager >= OVER_EAGER,
            "" if over_eager is not None else missing,
        ),
        bar(
            "mlp: CudaGraph, compared with a hand-made graph (the faster of LibTorch's and PyTorch's)",
            f"at most {OVER_HAND:g} times its seconds",
            over_hand,
            over_hand is not None and over_hand <= OVER_HAND,
            "" if over_hand is not None else missing,
        ),
    ]
    for job in CASES:
        losses = [
            case["figures"]["loss"]["median"]
            for case in cases
            if case["job"] == job and case["result"] == "passed" and "loss" in case["figures"]
        ]
        spread = max(losses) / min(losses) if len(losses) > 1 and min(losses) > 0 else None
        bars.append(
            bar(
                f"{job}: final losses agree",
                f"the largest at most {LOSS_SPREAD:g} times the least",
                spread,
                spread is not None and spread <= LOSS_SPREAD,
                "" if spread is not None else "fewer than two cases have figures",
            )
        )
        if job not in MOST_LOSS:
            continue
        largest = max(losses, default=None)
        bars.append(
            bar(
                f"{job}: every way has learnt",
                f"the largest final loss at most {MOST_LOSS[job]:g}",
                largest,
                largest is not None and largest <= MOST_LOSS[job],
                "" if largest is not None else "no case has figures",
            )
        )
    return bars


# ---- the machine ---------------------------------------------------------------------------------


def asked(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> str:
    for folder in (pathlib.Path.cwd(), HERE.parent):
        if (folder / "VERSION").is_file():
            return (folder / "VERSION").read_text().strip()
    return asked(["git", "-C", str(HERE), "rev-parse", "HEAD"]) or "unknown"


def options_of(words: list[str]) -> list[str]:
    """Without the folders that ./dev gives."""
    kept = list(words)
    for given in ("--bin", "--out"):
        if given in kept:
            at = kept.index(given)
            del kept[at : at + 2]
    return kept


def machine(info: dict) -> dict:
    smi = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = asked(smi).splitlines() if info["device"] != "cpu" else []
    return {
        "device": info["device"],
        "driver": driver[0].strip() if driver else "unknown",
        "cuda": info.get("cuda", "unknown"),
        "cuda_of_driver": info.get("cuda_of_driver", "unknown"),
        "torch": info.get("torch", "unknown"),
        "optimised": bool(info.get("optimised")),
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "command": " ".join(["./dev bench gpu", *options_of(sys.argv[1:])]),
    }


# ---- the table -----------------------------------------------------------------------------------


def micro(case: dict, name: str) -> str:
    value = case["figures"].get(name, {}).get("median")
    return "" if value is None else f"{value * 1e6:.1f}"


def spread(case: dict) -> str:
    step = case["figures"].get("seconds_per_step")
    return f"{step['min'] * 1e6:.1f}..{step['max'] * 1e6:.1f}" if step else ""


def mebibytes(case: dict, name: str) -> str:
    value = case["figures"].get(name, {}).get("median")
    return "" if value is None else f"{value / 2**20:.0f}"


def gap(case: dict, cases: list[dict]) -> str:
    """Microseconds of a step in which the device does none of a replay's work."""
    device = figure(cases, case["job"], "hand", "hand", "replay_seconds_per_step")
    step = case["figures"].get("seconds_per_step", {}).get("median")
    return "" if device is None or step is None else f"{(step - device) * 1e6:.1f}"


def show(report: dict) -> None:
    cases = report["cases"]
    print(f"\n{report['device']}, driver {report['driver']}, torch {report['torch']}")
    print(
        "microseconds a step. host: until all is launched, waits included; launch: without waits;"
    )
    print("gap: the step less a bare replay of the hand-made graph")
    print(
        f"{'case':34}{'result':9}{'rounds':>7}{'step':>10}{'spread':>20}{'host':>10}{'launch':>10}"
        f"{'gap':>10}{'MiB':>7}{'loss':>8}"
    )
    for case in cases:
        loss = case["figures"].get("loss", {}).get("median")
        print(
            f"{case['name']:34}{case['result']:9}{len(case['rounds']):7}"
            f"{micro(case, 'seconds_per_step'):>10}{spread(case):>20}"
            f"{micro(case, 'host_seconds_per_step'):>10}"
            f"{micro(case, 'launch_seconds_per_step'):>10}"
            f"{gap(case, cases):>10}{mebibytes(case, 'peak_allocated'):>7}"
            f"{'' if loss is None else f'{loss:.4f}':>8}"
        )
        if case["why"]:
            print(f"    {case['why']}")
        for line in case["advice"]:
            print(f"    advice: {line}")
    print()
    for each in report["bars"]:
        value = "" if each["value"] is None else f"{each['value']:.2f}"
        print(f"{each['result']:8} {each['name']}, {each['bar']}: {value or each['why']}")


# ---- all of it -----------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of bench_gpu")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="results file; logs go to its folder")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: a dry run")
    parser.add_argument("--seconds", type=float, default=420, help="no case begins after these")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default=",".join(CASES), help="with commas between")
    parser.add_argument("--steps", type=int, help="of every job, for a dry run")
    parser.add_argument(
        "--unoptimised", action="store_true", help="a trial: take a bench_gpu without optimisation"
    )
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch")
    args = parser.parse_args()
    args.jobs = args.jobs.split(",")
    if unknown := [job for job in args.jobs if job not in CASES]:
        parser.error(f"there is no job '{unknown[0]}'. There are {', '.join(CASES)}.")
    if args.rounds < 1 or args.seconds <= 0:
        parser.error("--rounds and --seconds must be positive.")
    args.bin = args.bin.resolve()
    if not os.access(args.bin / "bench_gpu", os.X_OK):
        parser.error(f"{args.bin} holds no program bench_gpu. Build it and name its folder.")
    return args


def order(jobs: list[str], rounds: int) -> list[tuple[str, bool, int]]:
    """Job, whether its quick cases, round. The first job's quick rounds come first, because the bars of
    speed use that job. Then one quick round of the others, the slow cases from the largest job on, and further rounds."""
    first, rest = jobs[:1], jobs[1:]
    turns = [(job, True, i) for i in range(rounds) for job in first]
    turns += [(job, True, 0) for job in rest]
    turns += [(job, False, 0) for job in reversed(jobs)]
    return turns + [(job, True, i) for i in range(1, rounds) for job in rest]


def rotated(cases: list, round_: int) -> list:
    at = round_ * 3 % len(cases)
    return cases[at:] + cases[:at]


def main() -> int:
    args = parse()
    begin = time.monotonic()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    logs = args.out.parent / "bench-logs"
    logs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="frugal-gpu-", ignore_cleanup_errors=True) as caches:
        env = environment(caches, args.bin)
        probe = [str(args.bin / "bench_gpu"), "--info", "--device", args.device]
        code, text = run(probe, logs / "info.log", PROBE_LIMIT, env)
        if code == NOT_RUN:
            print("no GPU found")
            return NOT_RUN
        info = last_json(text)
        if code != 0 or info is None:
            print(f"gpu: bench_gpu does not run: exit code {code}, {tail_of(logs / 'info.log')}")
            return 1
        if not (info.get("optimised") or args.unoptimised):
            print("gpu: bench_gpu was built without optimisation; its figures would say nothing.")
            print("Build it with -O2 (./dev gpu build); --unoptimised is for a trial.")
            return 1
        report = {"kind": "frugal gpu bench"} | machine(info) | {"complete": False}
        cases = {job: [Case(job, *each) for each in CASES[job]] for job in args.jobs}

        def update() -> None:
            report["seconds"] = round(time.monotonic() - begin, 1)
            every = [case for job in args.jobs for case in cases[job]]
            report["complete"] = all(case.over(args.rounds) for case in every)
            report["cases"] = [case.told() for case in every]
            bars = bars_of(report["cases"])
            report["bars"] = [each for each in bars if each["name"].split(":")[0] in cases]
            visit.write(report, args.out)

        update()
        for job, quick, i in order(args.jobs, args.rounds):
            for case in rotated([each for each in cases[job] if each.quick == quick], i):
                left = args.seconds - (time.monotonic() - begin)
                if case.over(args.rounds) or left < min(case.expected, 0.5 * args.seconds):
                    continue
                case.measure(args, i, left, logs, env)
                at = time.monotonic() - begin
                shown = case.why or micro(case.told(), "seconds_per_step") + " us a step"
                print(f"{at:6.1f} s round {i + 1}: {case.name}: {case.result}, {shown}", flush=True)
                update()
        update()
    show(report)
    failed = any(case["result"] == "failed" for case in report["cases"])
    return 1 if failed or any(b["result"] != "passed" for b in report["bars"]) else 0


if __name__ == "__main__":
    sys.exit(main())
