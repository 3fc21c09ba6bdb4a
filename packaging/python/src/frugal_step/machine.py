# SPDX-License-Identifier: Apache-2.0
"""The machine that a package is compiled for."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import torch

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
_WIDTHS = {"x86-64-v3": 256, "x86-64-v4": 512, "native": None}


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


@contextlib.contextmanager
def compiler_for(march: str):
    """A compiler that writes code for `march`, and inductor's setting for the width of its vectors.

    Inductor itself compiles for the machine that it runs on. The last -march of a command counts.
    """
    if march not in _WIDTHS:
        raise ExportError(
            f"there is no instruction set '{march}'",
            where="march",
            why=f"packages are made for {', '.join(_WIDTHS)}",
            fix="Name one of these.",
        )
    real = compiler()
    if march == "x86-64-v4" and "avx512f" not in _flags_here():
        raise ExportError(
            "this machine has no AVX-512",
            where="march='x86-64-v4'",
            why="torch tries the instructions that it compiles for",
            fix="Export on a machine with AVX-512, or use x86-64-v3.",
        )
    with tempfile.TemporaryDirectory() as folder:
        wrapper = os.path.join(folder, os.path.basename(real))
        with open(wrapper, "w") as file:
            file.write(f'#!/bin/sh\nexec {shlex.quote(shutil.which(real))} "$@" -march={march}\n')
        os.chmod(wrapper, 0o755)
        settings = {"cpp.cxx": (wrapper,)} if march != "native" else {}
        if _WIDTHS[march] is not None:
            settings["cpp.simdlen"] = _WIDTHS[march]
        yield settings


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
