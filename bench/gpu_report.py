# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/gpu.md from the results of bench/gpu.py and of the GPU tests.

    python3 bench/gpu_report.py tests.json bench.json [bench.json ...] --write docs/gpu.md

Without results from a GPU the page is unchanged.
"""

import argparse
import json
import pathlib
import sys

from common import write_between

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
RAN = ("passed", "failed")
BENCH = "frugal gpu bench"  # the kind of bench/gpu.py's results
JOBS = {
    "mlp": "MLP 784-512-512-10, batch 32",
    "convnet": "two convolutions, batch 128",
    "transformer": "transformer of 6 layers, width 384, 128 tokens, batch 16",
    "large": "transformer of 8 layers, width 2048, 512 tokens, batch 8 (0.42 billion parameters)",
}
NAMES = {
    ("frugal", "eager"): "frugal",
    ("frugal", "eager+device"): "frugal, `DevicePrefetch`",
    ("frugal", "graph"): "frugal, `CudaGraph`",
    ("frugal", "graph+device"): "frugal, `CudaGraph`, `DevicePrefetch`",
    ("frugal", "bf16"): "frugal, `Precision<BF16>`",
    ("frugal", "graph+bf16"): "frugal, `CudaGraph`, `Precision<BF16>`",
    ("frugal", "graph+fp8"): "frugal, `CudaGraph`, `Precision<FP8>`",
    ("frugal", "graph+int8"): "frugal, `CudaGraph`, `Precision<INT8>`",
    ("frugal", "bf16+recompute"): "frugal, `Precision<BF16>`, `Recompute`",
    ("frugal", "bf16+offload"): "frugal, `Precision<BF16>`, `Activations<Offload>`",
    ("hand", "hand"): "CUDA graph by hand, LibTorch",
    ("torch", "eager"): "PyTorch",
    ("torch", "bf16"): "PyTorch, autocast to BF16",
    ("torch", "compile+bf16"): "PyTorch, `torch.compile`, autocast to BF16",
    ("torch", "cudagraph"): "PyTorch, `torch.cuda.graph` by hand",
    ("torch", "compile"): "PyTorch, `torch.compile` of forward and backward, optimizer eager",
    ("package", "package+graph"): "frugal, compiled step, `CudaGraph`",
    ("package", "package+bf16+graph"): "frugal, compiled step, `CudaGraph`, `Precision<BF16>`",
    ("lightning", "lightning"): "Lightning, DataLoader",
    ("accelerate", "accelerate"): "Accelerate, DataLoader",
}


def read(path: pathlib.Path) -> dict:
    """The contents of a file; {} if it is missing or broken, which is reported."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        print(f"gpu_report: {path} is not used: {error}", file=sys.stderr)
        return {}
    return found if isinstance(found, dict) else {}


def has_results(found: dict) -> bool:
    """Whether there are real results: a dry run on a CPU, or an unoptimised program, does not count."""
    ran = any(case.get("result") in RAN for case in found.get("cases", []))
    return ran and found.get("device", "cpu") != "cpu" and found.get("optimised", True)


def cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: list[str], rows: list[list[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell(each) for each in line) + " |" for line in lines] + [""]


def of_the_machine(found: dict) -> str:
    parts = [f"{found['device']}, driver {found.get('driver', 'unknown')}"]
    if "cuda" in found:
        parts.append(f"CUDA {found['cuda']}, torch {found.get('torch', 'unknown')}")
    parts.append(found.get("date", "date unknown"))
    if "commit" in found:
        name, *changes = found["commit"].split(" ", 1)
        parts.append(" ".join([f"commit {name[:12]}", *changes]))  # "with changes"
    return ", ".join(parts)


def middle(case: dict, name: str) -> float | None:
    return case.get("figures", {}).get(name, {}).get("median")


def number(value: float | None, scale: float, digits: int) -> str:
    return "" if value is None else f"{value * scale:.{digits}f}"


def row(case: dict, device: float | None) -> list[object]:
    step = middle(case, "seconds_per_step")
    spread = case.get("figures", {}).get("seconds_per_step")
    shown = case["result"] if not case.get("why") else f"{case['result']}: {case['why']}"
    return [
        NAMES.get((case["by"], case["how"]), f"{case['by']} {case['how']}"),
        number(step, 1e6, 1),
        f"{spread['min'] * 1e6:.1f} to {spread['max'] * 1e6:.1f}" if spread else "",
        len(case.get("rounds", [])),
        number(middle(case, "launch_seconds_per_step"), 1e6, 1),
        number(middle(case, "host_seconds_per_step"), 1e6, 1),
        number(step - device if step is not None and device is not None else None, 1e6, 1),
        number(middle(case, "peak_allocated"), 2**-20, 0),
        number(middle(case, "peak_reserved"), 2**-20, 0),
        number(middle(case, "loss"), 1, 4),
        shown,
    ]


def of_the_bench(found: dict) -> list[str]:
    lines = ["### Speed", "", f"Measured on {of_the_machine(found)}, with", ""]
    lines += [f"    {cell(found.get('command', 'python3 bench/gpu.py'))}", ""]
    if not found.get("complete", True):
        lines += ["The benchmark was interrupted: some rounds are missing.", ""]
    lines += [
        "FP32 with TF32 matrix products, fused AdamW, data on the host, one host thread.",
        "Times are microseconds per step, medians over the rounds. *Launch* is the host's time for a",
        "step if it never waits; *host* is its time until all steps are launched, including waits;",
        "*gap* is the step minus a bare replay of the hand-made graph. Memory is the process's peak",
        "in MiB, as LibTorch's allocator counts it.",
        "",
    ]
    rows = [
        [each["name"], each["bar"], number(each["value"], 1, 2) or each["why"], each["result"]]
        for each in found.get("bars", [])
    ]
    lines += table(["bar", "holds if", "measured", "result"], rows)
    head = ["loop", "step", "range", "rounds", "launch", "host", "gap", "allocated"]
    head += ["reserved", "final loss", "result"]
    jobs = list(dict.fromkeys(case["job"] for case in found["cases"]))
    for job in jobs:
        cases = [case for case in found["cases"] if case["job"] == job]
        by_hand = [
            middle(case, "replay_seconds_per_step") for case in cases if case["by"] == "hand"
        ]
        device = by_hand[0] if by_hand else None
        lines += [f"**{JOBS.get(job, job)}**", ""]
        if device is not None:
            lines += [f"A bare replay takes {device * 1e6:.1f} microseconds.", ""]
        lines += table(head, [row(case, device) for case in cases])
        for case in cases:
            lines += [f"* {case['name']}: advice: {cell(a)}" for a in case.get("advice", [])]
        if lines[-1]:
            lines.append("")
    return lines


def of_the_tests(found: dict) -> list[str]:
    cases = found["cases"]
    counts = ", ".join(
        f"{sum(case['result'] == result for case in cases)} {result}"
        for result in (*RAN, "not run")
    )
    lines = ["### Tests", "", f"Run on {of_the_machine(found)}: {counts}.", ""]
    rows = [
        [
            case["name"],
            case.get("title", ""),
            case["result"],
            number(case.get("seconds"), 1, 1),
            case.get("why") or "",
        ]
        for case in cases
    ]
    return lines + table(["case", "shows", "result", "seconds", "why"], rows)


def text_of(found: list[dict]) -> str | None:
    """The text between the markers, or None without results."""
    lines: list[str] = []
    for each in found:
        if has_results(each):
            lines += of_the_bench(each) if each.get("kind") == BENCH else of_the_tests(each)
    if not lines:
        return None
    return "\n".join(["## Results", "", *lines]).rstrip()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results", type=pathlib.Path, nargs="+", help="of bench/gpu.py, and of the tests"
    )
    parser.add_argument(
        "--write", type=pathlib.Path, help="the page to update; without it, the text is printed"
    )
    args = parser.parse_args(words)
    text = text_of([read(each) for each in args.results])
    if text is None:
        print("gpu_report: there are no results from a GPU; nothing is changed.")
        return 0
    if args.write is None:
        print(text)
        return 0
    page = args.write.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        print(f"gpu_report: {args.write} must hold {BEGIN} and {END}, once each.", file=sys.stderr)
        return 2
    write_between(args.write, BEGIN, END, text)
    print(f"gpu_report: the tables of {args.write} are updated.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
