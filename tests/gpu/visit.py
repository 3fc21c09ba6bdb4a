# SPDX-License-Identifier: Apache-2.0
"""Shared by run.py and bench/gpu.py: cases that end with their runner, and results that stay whole if a
run is cut off."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)


def _end_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command: list[str], **more) -> subprocess.Popen:
    """Starts a case in its own process group, which ends when its runner is killed."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_end_with_parent,
        **more,
    )


def code_of(process: subprocess.Popen, limit: float) -> int | None:
    """The exit code; None after `limit` seconds. In either case its group is killed, with everything
    that it has started."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the driver, and is left there


def write(found: dict, path: Path) -> None:
    """Replaces the file atomically, and its copy in the folder OUT, if set: a machine lent for one command
    returns only that folder."""
    copies = [path]
    if os.environ.get("OUT"):
        copies.append(Path(os.environ["OUT"]) / path.name)
    for each in copies:
        try:
            new = each.with_suffix(".new")
            new.write_text(json.dumps(found, indent=1) + "\n")
            new.replace(each)
        except OSError as error:
            if each is path:
                raise
            print(f"the copy {each} is not written: {error}", file=sys.stderr)
