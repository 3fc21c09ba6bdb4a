# SPDX-License-Identifier: Apache-2.0
"""The cost of frugal for the compiler.

Headers: how much longer a file takes with frugal's umbrella header in addition to torch/torch.h,
parsed only and compiled with -O2.

Program: README's, compared with the same job by hand in LibTorch (bench/compile/by_hand.cpp), with
every available compiler: from the headers alone, and with frugal::compiled; the library's first source file is
timed as well. Then its time with the precompiled header of frugal_precompile(), unoptimised and with -O2, compared
with an empty file.

The compilations are interleaved, one at a time, without a cache. Times are processor seconds, user
and system, in the fastest round: other load only adds to them.

Recipes: a file with the umbrella, the same with frugal/recipes.hpp as well, and with a product of 16
recipes that is filtered, parsed only, with every available compiler.

Templates: the number of instantiations of a fitted trainer with 0, 4, 8 and 16 observers
(bench/compile/recipe.cpp), counted by Clang, whose trace has one event for each. Counts, unlike
seconds, are the same on every machine; the growth per policy must not rise with their number.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPE = ROOT / "bench" / "compile" / "recipe.cpp"

BY_HAND = ROOT / "bench" / "compile" / "by_hand.cpp"
TIME_BAR = 1.25  # file with torch/torch.h and the umbrella, relative to torch/torch.h alone
# README's program at -O2, relative to the same job by hand.
PROGRAM_BARS = {"the program": 1.6, "the program, compiled": 1.25}
PRECOMPILED_BAR = 8.0  # seconds, of the program with a precompiled header
POLICIES = (0, 4, 8, 16)
PER_BLOCK = 4  # observers in one block of recipe.cpp
GROWTH_SLACK = 1.01  # names that two policies share are instantiated once, so counts vary

SOURCES = {
    "torch": "#include <torch/torch.h>\n",
    "umbrella": "#include <{header}>\n",
    "both": "#include <torch/torch.h>\n#include <{header}>\n",
}
PRODUCT = """
namespace fr = frugal;
constexpr auto all = fr::product(
    fr::Recipe<>{}, fr::Axis<fr::Optimize<fr::AdamW>, fr::Optimize<fr::SGD>>{},
    fr::Axis<fr::Precision<fr::FP32>, fr::Precision<fr::BF16>>{},
    fr::Axis<fr::Accumulate<1>, fr::Accumulate<4>>{}, fr::Axis<fr::Without, fr::ClipNorm<>>{});
constexpr auto legal = boost::hana::filter(all, fr::is_legal);
"""
UMBRELLA = "#include <frugal/frugal.hpp>\n"
RECIPES = {
    "frugal.hpp": UMBRELLA,
    "with recipes.hpp": UMBRELLA + "#include <frugal/recipes.hpp>\n",
    "with a product": UMBRELLA + "#include <frugal/recipes.hpp>\n#include <boost/hana/filter.hpp>\n" + PRODUCT,
}
MODES = {
    "syntax": ["-fsyntax-only"],
    "O0": ["-O0", "-c", "-o", "{object}"],
    "O2": ["-O2", "-c", "-o", "{object}"],
}
HEADER_MODES = ("syntax", "O2")
PRECOMPILED_MODES = ("O0", "O2")

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


@dataclass
class Cost:
    """The cost of one compilation."""

    seconds: float  # processor time, user and system
    mib: float  # of the largest compiler process


def compile_once(command: list[str]) -> Cost:
    # CCACHE_DISABLE: the compiler may be a link to ccache, which would be measured instead.
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            lines = said.read().splitlines()
            errors = [line for line in lines if "error" in line] or lines
            raise Failed(f"`{' '.join(command)}` failed:\n" + "\n".join(errors[:5]))
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def fastest(costs: list[Cost]) -> Cost:
    return Cost(min(c.seconds for c in costs), max(c.mib for c in costs))


def interleave(args, names: list[str], measure, what: str) -> dict[str, list[Cost]]:
    """Every round measures each name once, starting with another one."""
    costs: dict[str, list[Cost]] = {name: [] for name in names}
    for turn in range(args.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            print(f"{what}, round {turn + 1}/{args.rounds}: {name}", file=sys.stderr)
            costs[name].append(measure(name))
    return costs


def options_of(mode: str, folder: pathlib.Path) -> list[str]:
    return [option.format(object=folder / "out.o") for option in MODES[mode]]


def measure_headers(args, folder: pathlib.Path) -> dict:
    for name, text in SOURCES.items():
        body = text.format(header=args.header) + "int main() {}\n"
        (folder / f"{name}.cpp").write_text(body)
    result = {}
    for mode in HEADER_MODES:
        costs = interleave(args, list(SOURCES), lambda name: compile_once(
            [args.cxx, *flags(args), *options_of(mode, folder), str(folder / f"{name}.cpp")]),
            f"headers, {mode}")  # fmt: skip
        seconds = {name: fastest(of).seconds for name, of in costs.items()}
        ratio = seconds["both"] / seconds["torch"]
        result[mode] = {"rounds": {name: [vars(c) for c in of] for name, of in costs.items()},
                        "fastest": seconds, "ratio": ratio, "met": ratio <= TIME_BAR}  # fmt: skip
    return result


def precompile(compiler: str, args, folder: pathlib.Path, mode: str) -> tuple[Cost, list[str]]:
    """Makes the header as frugal_precompile() does in CMake; returns its cost and the flags to use it."""
    header = folder / "frugal_pch.hpp"
    header.write_text("#include <torch/torch.h>\n#include <frugal/frugal.hpp>\n")
    level = [option for option in MODES[mode] if option.startswith("-O")]
    make = [compiler, *flags(args), *level, "-x", "c++-header", str(header), "-o"]
    if "clang" in pathlib.Path(compiler).name:
        made = f"{header}.pch"
        cost = compile_once([*make, made, "-fpch-instantiate-templates"])
        return cost, ["-include-pch", made]
    return compile_once([*make, f"{header}.gch"]), ["-include", str(header)]


def program_of_readme(folder: pathlib.Path) -> pathlib.Path:
    text = (ROOT / "README.md").read_text()
    found = re.search(r"```cpp\n(#include <frugal/frugal.hpp>\n.*?)```", text, re.DOTALL)
    if not found:
        raise Failed("README.md has no program that begins with #include <frugal/frugal.hpp>.")
    program = folder / "readme.cpp"
    program.write_text(found.group(1))
    return program


def measure_program(args, folder: pathlib.Path) -> dict:
    torch = folder / "torch.cpp"
    torch.write_text(SOURCES["torch"] + "int main() {}\n")
    program = program_of_readme(folder)
    library = folder / "library.cpp"
    library.write_text("#include <frugal/src.hpp>\n")
    empty = folder / "empty.cpp"
    empty.write_text("int main() {}\n")
    result = {}
    for compiler in args.compilers:
        name = pathlib.Path(compiler).name
        sources = {"torch/torch.h alone": [torch], "by hand": [BY_HAND], "the program": [program],
                   "the program, compiled": ["-DFRUGAL_COMPILED", program]}  # fmt: skip
        costs = interleave(args, list(sources), lambda which: compile_once(
            [compiler, *flags(args), *options_of("O2", folder), *map(str, sources[which])]),
            f"program, {name}")  # fmt: skip
        cost = {which: vars(fastest(of)) for which, of in costs.items()}
        once = compile_once([compiler, *flags(args), *options_of("O2", folder), str(library)])
        ratios = {which: cost[which]["seconds"] / cost["by hand"]["seconds"] for which in PROGRAM_BARS}
        result[name] = {"fastest": cost, "library": vars(once), "ratios": ratios,
                        "met": all(ratios[which] <= bar for which, bar in PROGRAM_BARS.items())}  # fmt: skip
        for mode in PRECOMPILED_MODES:
            made, use = precompile(compiler, args, folder, mode)
            sources = {"an empty file": empty, "the program": program}
            costs = interleave(args, list(sources), lambda which: compile_once(
                [compiler, *flags(args), *use, *options_of(mode, folder), str(sources[which])]),
                f"precompiled header, {name}, {mode}")  # fmt: skip
            cost = {which: vars(fastest(of)) for which, of in costs.items()}
            result[f"{name}, {mode}, precompiled"] = {
                "header": vars(made), "fastest": cost,
                "met": cost["the program"]["seconds"] <= PRECOMPILED_BAR}  # fmt: skip
    return result


def measure_recipes(args, folder: pathlib.Path) -> dict:
    files = {}
    for at, (name, text) in enumerate(RECIPES.items()):
        files[name] = folder / f"recipes_{at}.cpp"
        files[name].write_text(text + "int main() {}\n")
    result = {}
    for compiler in args.compilers:
        costs = interleave(args, list(files), lambda name: compile_once(
            [compiler, *flags(args), *options_of("syntax", folder), str(files[name])]),
            f"recipes, {pathlib.Path(compiler).name}")  # fmt: skip
        result[pathlib.Path(compiler).name] = {name: vars(fastest(of)) for name, of in costs.items()}
    return result


def count(args, folder: pathlib.Path, policies: int | None) -> dict:
    """Instantiations in recipe.cpp: all, and those in frugal's namespace."""
    trace = folder / "trace.json"
    define = [] if policies is None else [f"-DBLOCKS={policies // PER_BLOCK}"]
    umbrella = ["-DFRUGAL_UMBRELLA"] if args.header == "frugal/frugal.hpp" else []
    # Granularity 0 keeps the events below half a millisecond, which are most.
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


def show_headers(result: dict) -> None:
    for mode, entry in result.items():
        seconds = "  ".join(f"{name} {value:.2f} s" for name, value in entry["fastest"].items())
        print(f"headers, {mode}: {seconds}")
        print(
            f"bar: torch/torch.h and the umbrella at most {TIME_BAR} of torch/torch.h: "
            f"{entry['ratio']:.3f}, {verdict(entry['met'])}"
        )


def show_program(result: dict) -> None:
    for what, entry in result.items():
        if "ratios" in entry:
            costs = "  ".join(f"{name} {cost['seconds']:.2f} s, {cost['mib']:.0f} MiB"
                              for name, cost in entry["fastest"].items())  # fmt: skip
            once = entry["library"]
            print(f"program, {what}: {costs}  frugal::compiled once {once['seconds']:.2f} s, {once['mib']:.0f} MiB")
            for which, bar in PROGRAM_BARS.items():
                ratio = entry["ratios"][which]
                print(f"bar: {which} at most {bar} of the same job by hand: {ratio:.3f}, "
                      f"{verdict(ratio <= bar)}")  # fmt: skip
        else:
            costs = "  ".join(f"{name} {cost['seconds']:.2f} s, {cost['mib']:.0f} MiB"
                              for name, cost in entry["fastest"].items())  # fmt: skip
            print(f"program, {what}: the header once {entry['header']['seconds']:.2f} s  {costs}")
            print(f"bar: at most {PRECOMPILED_BAR:g} s: {verdict(entry['met'])}")


def show_recipes(result: dict) -> None:
    for compiler, costs in result.items():
        shown = "  ".join(f"{name} {cost['seconds']:.2f} s, {cost['mib']:.0f} MiB" for name, cost in costs.items())
        print(f"recipes, {compiler}: {shown}")


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
    parser.add_argument("--cxx", default="g++", help="compiler of the headers' time")
    parser.add_argument("--clang", help="Clang that counts; found by itself when left out")
    parser.add_argument("--torch", type=pathlib.Path, required=True, help="has include/ and lib/")
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include")
    parser.add_argument("--header", default="frugal/frugal.hpp", help="the umbrella")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=tuple(PARTS))
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
    if args.clang is None:
        found = (shutil.which(name) for name in ("clang++-19", "clang++"))
        args.clang = next((path for path in found if path), None)
    if args.only != "headers" and args.clang is None:
        raise Failed(
            "programs and instantiations are compiled with Clang, and there is none. Install "
            "clang-19, or leave them out with --only headers."
        )
    args.compilers = [args.cxx, args.clang]


PARTS = {"headers": measure_headers, "program": measure_program, "recipes": measure_recipes,
         "templates": measure_templates}  # fmt: skip


def main() -> int:
    args = parse()
    report = {}
    try:
        check(args)
        with tempfile.TemporaryDirectory() as folder:
            for part, measure in PARTS.items():
                if args.only in (None, part):
                    report[part] = measure(args, pathlib.Path(folder))
    except Failed as error:
        print(f"compile: {error}", file=sys.stderr)
        return 2
    for part, show in {"headers": show_headers, "program": show_program,
                       "recipes": show_recipes, "templates": show_templates}.items():  # fmt: skip
        if part in report:
            show(report[part])
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    bars = [e["met"] for part in ("headers", "program") for e in report.get(part, {}).values()]
    bars += [report["templates"]["met"]] if "templates" in report else []
    return 1 if args.strict and not all(bars) else 0


if __name__ == "__main__":
    sys.exit(main())
