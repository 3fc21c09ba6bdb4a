# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of bench/cluster.py and bench/cluster_links.py."""

import os
import re
import socket
import subprocess

from common import QUIET, Failed


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ended(started: list[subprocess.Popen]) -> list[str]:
    """The standard output of each, once all have ended."""
    outputs = [each.communicate() for each in started]
    for process, (_, errors) in zip(started, outputs):
        if process.returncode != 0:
            tail = "\n".join(errors.strip().splitlines()[-5:])
            raise Failed(f"`{' '.join(process.args)}` ended with exit code {process.returncode}:\n{tail}")
    return [output for output, _ in outputs]


def start(command: list[str], rank: int, ranks: int, port: int, host: str = "127.0.0.1",
          variables: dict | None = None) -> subprocess.Popen:
    """One rank, with one thread. Variables of a launcher that has started this program do not reach it."""
    place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": host, "MASTER_PORT": str(port),
             "RANK": str(rank), "LOCAL_RANK": str(rank)}  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not re.match("SLURM|TORCHELASTIC|OMPI", name)}
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=kept | QUIET | threads | place | (variables or {}))  # fmt: skip
