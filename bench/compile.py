# SPDX-License-Identifier: Apache-2.0
"""What frugal costs the compiler.

Time: how much longer a file takes that includes frugal's umbrella beside torch/torch.h, parsed
alone and compiled with -O2. The compilations are interleaved, one at a time, without a cache.

Templates: how many instantiations a fitted trainer needs with 0, 4, 8 and 16 observers
(bench/compile/recipe.cpp), counted by Clang, whose trace has one event for each. Counts, unlike
seconds, are the same on every machine; the growth per policy must not rise with their number.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPE = ROOT / "bench" / "compile" / "recipe.cpp"

TIME_BAR = 1.15  # torch/torch.h and the umbrella, over torch/torch.h alone
POLICIES = (0, 4, 8, 16)
PER_BLOCK = 4  # observers in one block of recipe.cpp
GROWTH_SLACK = 1.01  # names that two policies share are instantiated once, so counts wobble

SOURCES = {
    "torch": "#include <torch/torch.h>\n",
    "umbrella": "#include <{header}>\n",
    "both": "#include <torch/torch.h>\n#include <{header}>\n",
}
MODES = {"syntax": ["-fsyntax-only"], "O2": ["-O2", "-c", "-o", "{object}"]}

EVENTS = ("InstantiateClass", "InstantiateFunction")


class Failed(Exception):
    """One sentence for the reader; main() prints it."""


def flags(args) -> list[str]:
    torch = pathlib.Path(args.torch) / "include"
    system = [torch, torch / "torch" / "csrc" / "api" / "include"]
    return [
        "-std=c++20",
        "-D_GLIBCXX_USE_CXX11_ABI=1",
        *(part for path in system for part in ("-isystem", str(path))),
        "-I",
        str(args.include),
    ]


def compile_once(command: list[str]) -> float:
    """Seconds of one compilation."""
    start = time.perf_counter()
    # CCACHE_DISABLE: the compiler may be a link to ccache, which would be what is measured.
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
        raise Failed(f"`{' '.join(command)}` failed:\n" + "\n".join(errors[:5]))
    return time.perf_counter() - start


def measure_time(args, folder: pathlib.Path) -> dict:
    for name, text in SOURCES.items():
        body = text.format(header=args.header) + "int main() {}\n"
        (folder / f"{name}.cpp").write_text(body)
    seconds = {mode: {name: [] for name in SOURCES} for mode in MODES}
    names = list(SOURCES)
    for i in range(args.rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            for mode, options in MODES.items():
                print(f"time, round {i + 1}/{args.rounds}: {name} {mode}", file=sys.stderr)
                options = [option.format(object=folder / "out.o") for option in options]
                command = [args.cxx, *flags(args), *options, str(folder / f"{name}.cpp")]
                seconds[mode][name].append(compile_once(command))
    result = {}
    for mode, by_name in seconds.items():
        # The fastest round: what else a machine does only adds to a compilation.
        fastest = {name: min(values) for name, values in by_name.items()}
        ratio = fastest["both"] / fastest["torch"]
        result[mode] = {"seconds": by_name, "fastest": fastest, "ratio": ratio}
        result[mode]["met"] = ratio <= TIME_BAR
    return result


def count(args, folder: pathlib.Path, policies: int | None) -> dict:
    """Instantiations in recipe.cpp: all, and those whose name begins with frugal's namespace."""
    trace = folder / "trace.json"
    define = [] if policies is None else [f"-DBLOCKS={policies // PER_BLOCK}"]
    umbrella = ["-DFRUGAL_UMBRELLA"] if args.header == "frugal/frugal.hpp" else []
    # Granularity 0 keeps the events that took less than half a millisecond, which is most.
    tracing = [f"-ftime-trace={trace}", "-ftime-trace-granularity=0"]
    output = ["-c", "-o", str(folder / "out.o")]  # with -fsyntax-only there is no trace
    compile_once([args.clang, *flags(args), *define, *umbrella, *tracing, *output, str(RECIPE)])
    found = [e for e in json.loads(trace.read_text())["traceEvents"] if e["name"] in EVENTS]
    own = [e for e in found if e.get("args", {}).get("detail", "").startswith("frugal::")]
    return {"all": len(found), "frugal": len(own)}


def measure_templates(args, folder: pathlib.Path) -> dict:
    counts = {}
    for policies in (None, *POLICIES):
        shown = "headers alone" if policies is None else f"{policies} policies"
        print(f"templates: {shown}", file=sys.stderr)
        counts[policies] = count(args, folder, policies)
    pairs = list(zip(POLICIES, POLICIES[1:]))
    growth = [(counts[b]["all"] - counts[a]["all"]) / (b - a) for a, b in pairs]
    return {
        "headers": counts.pop(None),
        "policies": {str(policies): found for policies, found in counts.items()},
        "growth_per_policy": growth,
        "met": all(later <= GROWTH_SLACK * earlier for earlier, later in zip(growth, growth[1:])),
    }


def verdict(met: bool) -> str:
    return "met" if met else "NOT met"


def show_time(result: dict) -> None:
    for mode, entry in result.items():
        fastest = "  ".join(f"{name} {value:.2f} s" for name, value in entry["fastest"].items())
        print(f"time, {mode}: {fastest}")
        print(
            f"bar: torch/torch.h and the umbrella at most {TIME_BAR} of torch/torch.h: "
            f"{entry['ratio']:.3f}, {verdict(entry['met'])}"
        )


def show_templates(result: dict) -> None:
    print(f"{'instantiations':>16}{'all':>10}{'frugal::':>10}{'per policy':>12}")
    print(f"{'headers alone':>16}{result['headers']['all']:10}{result['headers']['frugal']:10}")
    growth = ["", *(f"{value:.1f}" for value in result["growth_per_policy"])]
    for (policies, found), per_policy in zip(result["policies"].items(), growth):
        name = f"{policies} policies"
        print(f"{name:>16}{found['all']:10}{found['frugal']:10}{per_policy:>12}")
    print(f"bar: the growth per policy does not rise: {verdict(result['met'])}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cxx", default="g++", help="compiler whose time is taken")
    parser.add_argument("--clang", help="Clang that counts; found by itself when left out")
    parser.add_argument("--torch", type=pathlib.Path, required=True, help="has include/ and lib/")
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include")
    parser.add_argument("--header", default="frugal/frugal.hpp", help="the umbrella")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("time", "templates"))
    parser.add_argument("--json", type=pathlib.Path, help="file for every figure")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is not met")
    parser.add_argument("--build", help="taken and not needed: every benchmark gets it")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be at least 1.")
    return args


def check(args) -> None:
    if not (args.torch / "include" / "torch").is_dir():
        raise Failed(f"{args.torch} has no include/torch. Name a LibTorch folder.")
    if not (args.include / args.header).is_file():
        raise Failed(f"{args.include / args.header} does not exist. Name it with --header.")
    if shutil.which(args.cxx) is None:
        raise Failed(f"there is no compiler {args.cxx}. Name one with --cxx.")
    if args.only != "time" and args.clang is None:
        found = (shutil.which(name) for name in ("clang++-19", "clang++"))
        args.clang = next((path for path in found if path), None)
        if args.clang is None:
            raise Failed(
                "instantiations are counted with Clang, and there is none. Install clang-19, or "
                "leave the counts out with --only time."
            )


def main() -> int:
    args = parse()
    report = {}
    try:
        check(args)
        with tempfile.TemporaryDirectory() as folder:
            if args.only != "templates":
                report["time"] = measure_time(args, pathlib.Path(folder))
            if args.only != "time":
                report["templates"] = measure_templates(args, pathlib.Path(folder))
    except Failed as error:
        print(f"compile: {error}", file=sys.stderr)
        return 2
    if "time" in report:
        show_time(report["time"])
    if "templates" in report:
        show_templates(report["templates"])
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    bars = [entry["met"] for entry in report.get("time", {}).values()]
    bars += [report["templates"]["met"]] if "templates" in report else []
    return 1 if args.strict and not all(bars) else 0


if __name__ == "__main__":
    sys.exit(main())
