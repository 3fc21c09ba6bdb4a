#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which of our headers a step goes through.

    step_path.py TORCH     the lines of each header that run in a step of step_path.cpp: LibTorch is in TORCH

Runs the program for 10 and for 20 steps with g++'s coverage. A line whose count grew by at least one a step is part
of a step, whether it is called or inlined; code of LibTorch and the standard library is not counted. A header and its
.ipp file are one. What takes part in an epoch alone, a validation or a save is not in the list.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FEW, MANY = 10, 20  # steps of the two runs
READ = 10  # a header with fewer lines of a step is a call, or a small type


def run(*command: str | Path, within: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=within, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"step_path: `{command[0]}` ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def counts(folder: Path, steps: int) -> collections.Counter:
    """How often each line of our headers runs in so many steps."""
    for old in folder.glob("*.gcda"):
        old.unlink()
    run(folder / "step", str(steps), within=folder)
    lines = collections.Counter()
    for document in run("gcov", "--json-format", "--stdout", *folder.glob("*.gcda"), within=folder).splitlines():
        for file in json.loads(document)["files"]:
            _, ours, name = file["file"].partition("/include/frugal/")
            for line in file["lines"] if ours else ():
                lines[f"frugal/{name}", line["line_number"]] += line["count"]
    return lines


def main(torch: Path) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run("g++", "-std=c++20", "-O0", "-g1", "--coverage", "-I", ROOT / "include", "-isystem", torch / "include",
            "-isystem", torch / "include/torch/csrc/api/include", ROOT / "tests/tools/step_path.cpp", "-o", "step", "-L",
            torch / "lib", f"-Wl,-rpath,{torch / 'lib'}", "-Wl,--as-needed", "-ltorch_cpu", "-lc10", "-lxxhash",
            within=folder)
        few, many = counts(folder, FEW), counts(folder, MANY)
    steps = collections.Counter()
    for (file, line), count in many.items():
        if count - few[file, line] >= MANY - FEW:
            steps[file.removesuffix(".ipp").removesuffix(".hpp")] += 1
    read = {each for each, lines in steps.items() if lines >= READ}
    length = {each: sum((ROOT / "include" / (each + end)).read_text(encoding="utf-8").count("\n")
                        for end in (".hpp", ".ipp") if (ROOT / "include" / (each + end)).exists()) for each in steps}
    for each, lines in steps.most_common():
        print(f"{lines:6} of {length[each]:5}  {each}.hpp")
    print(f"{steps.total()} lines run in a step, of {len(steps)} headers. {len(read)} headers have {READ} or more of "
          f"them: {sum(steps[each] for each in read)}, in {sum(length[each] for each in read)} lines")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
