# SPDX-License-Identifier: Apache-2.0
"""Searching, compared with training every trial in full, with Trainers by hand, and with Optuna and Ray Tune.

samples        Fashion-MNIST, a pool of candidates that train in full; halving replayed on their curves for 20 draws of two thirds of them
orchestration  the wall time over the trials' own seconds, of search(), Optuna and Ray Tune; and over the same runs by hand
promotion      samples that a promotion trains twice
architecture   Evolution and Hyperband with Tpe, compared with halving of random candidates, at equal samples, by test images
compile        seconds of the compiler for one recipe more
gpt            halving of a small GPT on the text of the Bible, compared with the median candidate in full
kills          workers that are killed: trials that are lost, and steps that are repeated

Everything computes with one thread. Measure on a quiet machine of two cores: curves, architecture and kills have two processes.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import search_parts
from common import QUIET, Failed, add_strict, judge, machine, parse, parser_of, told, version_of

PARTS = ("samples", "orchestration", "promotion", "architecture", "compile", "gpt", "kills")


class Bench:
    """The program, and what was measured."""

    def __init__(self, args, folder: pathlib.Path):
        self.args, self.folder = args, folder
        self.figures: dict = {}
        self.met = True

    def steps(self, usual: int) -> int:
        return self.args.steps or usual

    def command(self, way: str, name: str, *words) -> list[str]:
        return [str(self.args.frugal), "--way", way, "--folder", str(self.folder / name), "--data", str(self.args.data), *map(str, words)]

    def program(self, way: str, name: str, *words) -> dict:
        return told(self.command(way, name, *words))

    def workers(self, way: str, name: str, *words) -> dict:
        """What two processes with one folder print, which is the same."""
        command = self.command(way, name, *words)
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | QUIET)
                   for _ in range(2)]  # fmt: skip
        ended = [(each.communicate(), each.returncode) for each in started]
        for (_, errors), code in ended:
            if code != 0:
                raise Failed(f"`{' '.join(command[:3])} ...` ended with exit code {code}:\n{errors.strip()}")
        lines = [json.loads(said) for (said, _), _ in ended]
        if lines[0] != lines[1]:
            raise Failed(f"two workers of {name} came to different results")
        return lines[0]

    def python(self, script: str, *words) -> dict:
        return told([sys.executable, str(pathlib.Path(__file__).with_name(script)), *map(str, words)])

    def bar(self, text: str, value: float, bar: float, way: str = "most") -> None:
        self.met = judge(text, value, bar, way) and self.met


def arguments():
    parser = parser_of(__doc__, "bench_search")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}, with commas between")
    parser.add_argument("--rounds", type=int, default=5, help="of orchestration; at most three of compile")
    parser.add_argument("--trials", type=int, default=96, help="of the pool of samples; two thirds of them are a search")
    parser.add_argument("--gpt-trials", type=int, default=27)
    parser.add_argument("--seeds", type=int, default=5, help="of architecture")
    parser.add_argument("--budget", type=int, default=40, help="of each search of architecture, in whole runs")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, help="of every whole run, for a trial")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--text", type=pathlib.Path, help="of gpt, in place of the King James Bible")
    add_strict(parser)
    args = parse(parser)
    args.parts = args.parts.split(",")
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if args.trials < 18 or args.rounds < 1 or args.seeds < 2:
        parser.error("--trials takes 18 or more, --rounds 1 or more, --seeds 2 or more.")
    if "compile" in args.parts and args.torch is None:
        parser.error("compile needs --torch.")
    return args


def main() -> int:
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{machine()}, LibTorch {version_of(args.torch)}; load {os.getloadavg()[0]:.1f}")
    try:
        with tempfile.TemporaryDirectory(prefix="frugal-search-") as folder:
            bench = Bench(args, pathlib.Path(folder))
            for name in PARTS:
                if name in args.parts:
                    print(f"\n{name}", flush=True)
                    bench.figures[name] = getattr(search_parts, name)(bench)
    except (Failed, OSError) as error:
        print(f"search: {error}", file=sys.stderr)
        return 2
    if args.json:
        args.json.write_text(json.dumps(bench.figures, indent=2) + "\n")
    return 1 if args.strict and not bench.met else 0


if __name__ == "__main__":
    sys.exit(main())
