# SPDX-License-Identifier: Apache-2.0
"""The C++ program of a recipe, compiled once: policies are its types, and numbers are read when it starts."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import torch

from .errors import TrainError
from .recipe import Policy

_MAIN = (pathlib.Path(__file__).parent / "train.cpp.in").read_text(encoding="utf-8")
# Most of a step is the package's own code: the loop around it is compiled quickly rather than for speed.
_FLAGS = "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
_CMAKE = """cmake_minimum_required(VERSION 3.25)
project(frugal_train CXX)
find_package(frugal REQUIRED COMPONENTS step)
add_executable(train train.cpp)
target_link_libraries(train PRIVATE frugal::frugal frugal::step)
"""


def source_of(policies: list[Policy], validates: bool) -> str:
    """The program's text. It has the names of options, and no value."""
    fit = "Report const report = trainer.fit(train);"
    if validates:
        # Without validation data a recipe that watches it does not compile.
        fit = ('FieldsDataset valid = open_data(options.text("valid"), batch, false);\n'
               "  Report const report = trainer.fit(train, valid);")
    lines, names = [], []
    for number, policy in enumerate(policies):
        lines.append(f"  {policy.type} policy_{number}{{}};")
        lines += [f'  set(options, "{number}.{member}", policy_{number}.{member});' for member in policy.options]
        names.append(f"policy_{number}")
    text = _MAIN.replace("@POLICIES@", "\n".join(lines)).replace("@FIT@", fit)
    return text.replace("@NAMES@", "".join(f", {name}" for name in names))


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "frugal_train"


def compiled(policies: list[Policy], validates: bool, prefix: pathlib.Path, say) -> pathlib.Path:
    """The program of a recipe: from the cache, or compiled against the frugal that is installed in `prefix`."""
    source = source_of(policies, validates)
    version = (prefix / "include" / "frugal" / "version.hpp").read_text(encoding="utf-8")
    libtorch = torch.__path__[0]
    key = hashlib.sha256("\0".join([source, _CMAKE, _FLAGS, version, _stamp(prefix), torch.__version__, libtorch,
                                    str(prefix)]).encode())
    folder = cache_folder() / key.hexdigest()[:16]
    program = folder / "train"
    if program.exists():
        return program
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            raise TrainError(
                f"there is no {tool}",
                where="PATH",
                why="a recipe becomes a C++ program, which is compiled once",
                fix="Install cmake and g++.",
            )
    folder.parent.mkdir(parents=True, exist_ok=True)
    say("compiling the recipe; once, in a minute or two")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as held:
        build = pathlib.Path(held)
        (build / "train.cpp").write_text(source, encoding="utf-8")
        (build / "CMakeLists.txt").write_text(_CMAKE, encoding="utf-8")
        log = ""
        for command in (
            ["cmake", "-S", held, "-B", f"{held}/build", "-DCMAKE_BUILD_TYPE=Release", _FLAGS, f"-DCMAKE_PREFIX_PATH={prefix}",
             f"-DFRUGAL_LIBTORCH={libtorch}"],
            ["cmake", "--build", f"{held}/build"],
        ):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            log += done.stdout
            if done.returncode != 0:
                raise _failure(log, folder)
        done_folder = build / "done"
        done_folder.mkdir()
        shutil.copy(build / "build" / "train", done_folder / "train")
        shutil.copy(build / "train.cpp", done_folder / "train.cpp")
        try:
            os.rename(done_folder, folder)
        except OSError:  # another process was first
            if not program.exists():
                raise
    return program


def _stamp(prefix: pathlib.Path) -> str:
    """Changes when the installed headers do."""
    headers = sorted((prefix / "include" / "frugal").rglob("*.?pp"))
    return json.dumps([[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in headers])


def _failure(log: str, folder: pathlib.Path) -> TrainError:
    """The first sentence that frugal's headers or the compiler have for a recipe that does not compile."""
    kept = folder.with_suffix(".log")
    kept.write_text(log, encoding="utf-8")
    sentence = re.search(r"static assertion failed: \(?(frugal: .*?)(?:\)?$| \[)", log, re.MULTILINE)
    member = re.search(r"has no member named ['\u2018](\w+)['\u2019]", log)
    if sentence:
        why, fix = sentence[1].removeprefix("frugal: ").rstrip(". "), "Change the recipe as it says."
    elif member:
        why, fix = f"a policy has no option '{member[1]}'", "The policy's page has its options."
    else:
        first = re.search(r"(?:error|Error)[:\s]+(.*)", log)
        why, fix = (first[1] if first else "the compiler failed").rstrip(". "), "The log has all of it."
    return TrainError("the recipe does not compile", where=str(kept), why=why, fix=fix)
