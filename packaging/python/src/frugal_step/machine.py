# SPDX-License-Identifier: Apache-2.0
"""The machine that a package is compiled for."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile

import torch
from torch._inductor.runtime.cache_dir_utils import cache_dir

from .errors import ExportError

# What the compiler defines for an instruction set, and its flag in /proc/cpuinfo.
_FLAGS = {
    "SSE3": "pni", "SSSE3": "ssse3", "SSE4_1": "sse4_1", "SSE4_2": "sse4_2", "POPCNT": "popcnt", "AVX": "avx",
    "AVX2": "avx2", "FMA": "fma", "F16C": "f16c", "BMI": "bmi1", "BMI2": "bmi2", "LZCNT": "abm", "MOVBE": "movbe",
    "ADX": "adx", "AES": "aes", "PCLMUL": "pclmulqdq", "SHA": "sha_ni", "GFNI": "gfni", "VAES": "vaes",
    "VPCLMULQDQ": "vpclmulqdq", "AVX512F": "avx512f", "AVX512CD": "avx512cd", "AVX512BW": "avx512bw",
    "AVX512DQ": "avx512dq", "AVX512VL": "avx512vl", "AVX512VBMI": "avx512vbmi", "AVX512VBMI2": "avx512_vbmi2",
    "AVX512IFMA": "avx512ifma", "AVX512VNNI": "avx512_vnni", "AVX512BITALG": "avx512_bitalg",
    "AVX512VPOPCNTDQ": "avx512_vpopcntdq", "AVX512BF16": "avx512_bf16", "AVX512FP16": "avx512_fp16",
    "AVX512VP2INTERSECT": "avx512_vp2intersect", "AVXVNNI": "avx_vnni", "AVXIFMA": "avx_ifma",
    "AMX_TILE": "amx_tile", "AMX_BF16": "amx_bf16", "AMX_INT8": "amx_int8", "AMX_FP16": "amx_fp16",
    "MOVDIRI": "movdiri", "MOVDIR64B": "movdir64b", "SERIALIZE": "serialize",
}
DEFAULT = "x86-64-v3" if platform.machine() in ("x86_64", "AMD64") else "native"
_WIDTHS = {"x86-64-v3": 256, "x86-64-v4": 512, "native": None}

_SCRIPT = """\
#!/bin/sh
for argument; do
  shift
  case $argument in -m*) ;; *) set -- "$@" "$argument" ;; esac
done
exec {compiler} "$@" -march={march}
"""


def instructions_of(march: str, compiler: str) -> list[str]:
    """The flags of /proc/cpuinfo that code compiled with -march=`march` may need."""
    macros = subprocess.run([compiler, f"-march={march}", "-dM", "-E", "-x", "c++", "/dev/null"],
                            capture_output=True, text=True, check=True).stdout
    defined = set(re.findall(r"#define __(\w+?)__ 1", macros))
    return sorted(flag for macro, flag in _FLAGS.items() if macro in defined)


def compiler() -> str:
    """The C++ compiler with which torch compiles packages."""
    found = os.environ.get("CXX") or "g++"
    if shutil.which(found) is None:
        raise ExportError(
            f"there is no compiler '{found}'",
            where="CXX" if "CXX" in os.environ else "PATH",
            why="a package is machine code, which a C++ compiler writes",
            fix="Install g++, or set CXX to a C++ compiler.",
        )
    return found


def compiler_for(march: str) -> dict:
    """Inductor's settings of the compiler and of the width of vectors for `march`.

    Inductor itself compiles for the machine that it runs on.
    """
    if march not in _WIDTHS:
        raise ExportError(
            f"there is no instruction set '{march}'",
            where="march",
            why=f"packages are made for {', '.join(_WIDTHS)}",
            fix="Name one of these.",
        )
    if platform.machine() not in ("x86_64", "AMD64") and march != "native":
        raise ExportError(
            f"this machine is {platform.machine()}",
            where=f"march='{march}'",
            why="that instruction set is one of x86-64",
            fix="Give march='native': the package then runs on machines as this one.",
        )
    real = compiler()
    if march == "x86-64-v4" and "avx512f" not in _flags_here():
        raise ExportError(
            "this machine has no AVX-512",
            where="march='x86-64-v4'",
            why="torch tries the instructions that it compiles for",
            fix="Export on a machine with AVX-512, or use x86-64-v3.",
        )
    # Inductor would start Python six times to see whether it can load code for this processor.
    settings = {"cpp.cxx": (real if march == "native" else _wrapper(real, march),), "cpp.vec_isa_ok": True}
    if _WIDTHS[march] is not None:
        settings["cpp.simdlen"] = _WIDTHS[march]
    return settings


def _wrapper(real: str, march: str) -> str:
    """A script that calls the compiler with -march alone of all the flags that choose instructions.

    It stays where it is: inductor's precompiled headers, which take half a minute, are those of its path.
    """
    text = _SCRIPT.format(compiler=shlex.quote(os.path.abspath(shutil.which(real))), march=march)
    folder = os.path.join(cache_dir(), "frugal_step", hashlib.sha256(text.encode()).hexdigest()[:16])
    path = os.path.join(folder, os.path.basename(real))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _is_own(path, text):
        # Written aside and renamed: another export may run it at the same time.
        handle, aside = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(aside, 0o700)
        os.replace(aside, path)
    return path


def _is_own(path: str, text: str) -> bool:
    try:
        with open(path) as file:
            return file.read() == text and os.access(path, os.X_OK)
    except OSError:
        return False


def _flags_here() -> set[str]:
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.split(":", 1)[1].split())
    return set()


def device_name(device: torch.device) -> str:
    """The device that a package is made for: "cpu", or "cuda:sm_90"."""
    if device.type == "cpu":
        return "cpu"
    major, minor = torch.cuda.get_device_capability(device)
    return f"cuda:sm_{major}{minor}"
