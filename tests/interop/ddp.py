#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Replicate<Ring> with PyTorch's DistributedDataParallel, after 40 steps, Shard<States> with its
ZeroRedundancyOptimizer, Wire<BF16> with its bf16_compress_hook, and Wire<PowerSGD<R>> with its powerSGD_hook, after 20 steps:
ddp.py PROGRAM

PROGRAM is interop_ddp, built from ddp.cpp in this folder. Needs torch of requirements/model.txt.
"""

import multiprocessing
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.pop(0)  # safetensors.py of this folder is another one
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook  # noqa: E402
from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: E402

WINDOW, BATCH, ROWS = 4, 4, 160

program = ""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 256)
        self.norm = torch.nn.LayerNorm(256)
        self.middle = torch.nn.Linear(256, 64)
        self.second = torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.second(self.middle(self.norm(self.first(x)).relu()).relu())


def rank_of_python(folder: Path, way: str, steps: int) -> None:
    """One process of DistributedDataParallel: the micro-batches of a step that Replicate gives this rank."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    start = load_file(folder / "start.safetensors")
    net = Net()
    net.load_state_dict({name: value for name, value in start.items() if name not in ("rows", "labels")})
    parallel = torch.nn.parallel.DistributedDataParallel(net)
    if way == "wire":
        parallel.register_comm_hook(None, bf16_compress_hook)
    if way.startswith("power"):
        columns = int(way.removeprefix("power"))
        state = PowerSGDState(None, matrix_approximation_rank=columns, start_powerSGD_iter=2, random_seed=7)
        parallel.register_comm_hook(state, powerSGD_hook)
    if way == "zero":
        optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-3, weight_decay=1e-2)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    own = WINDOW // size
    for step in range(steps):
        optimizer.zero_grad()
        for k in range(own):
            begin = (step * WINDOW + rank * own + k) * BATCH % ROWS
            x, y = start["rows"][begin : begin + BATCH], start["labels"][begin : begin + BATCH]
            # The sums are those of the last micro-batch's backward pass.
            context = parallel.no_sync() if k + 1 < own else torch.enable_grad()
            with context:
                (torch.nn.functional.cross_entropy(parallel(x), y) / own).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    if rank == 0:
        if way.startswith("power"):
            assert state.iter == steps and any(each.abs().max() > 1e-3 for each in state.error_dict.values())
        save_file(net.state_dict(), folder / "python.safetensors")
    # One that ends by itself hangs now and then, if it had a communication hook.
    torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)


def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def places(size: int) -> list:
    """The environment of each rank."""
    kept = {k: v for k, v in os.environ.items() if not re.match("SLURM|TORCHELASTIC|RANK|WORLD|MASTER|LOCAL_|OMPI", k)}
    place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port()), "OMP_NUM_THREADS": "1"}
    return [kept | place | {"RANK": str(rank)} for rank in range(size)]


def run(command: list, size: int) -> None:
    started = [subprocess.Popen(command, env=place) for place in places(size)]
    try:
        codes = [each.wait(timeout=240) for each in started]
    finally:
        for each in started:
            each.kill()
    assert codes == [0] * size, f"{command} with {size} ranks: {codes}"


def begin_rank(place: dict, *arguments) -> None:
    os.environ.clear()
    os.environ.update(place)
    rank_of_python(*arguments)


def run_python(folder: Path, way: str, steps: int, size: int) -> None:
    """Forks the ranks, because importing torch takes longer than all else that they do."""
    fork = multiprocessing.get_context("fork")
    started = [fork.Process(target=begin_rank, args=(place, folder, way, steps)) for place in places(size)]
    for each in started:
        each.start()
    try:
        for each in started:
            each.join(timeout=240)
        codes = [each.exitcode for each in started]
    finally:
        for each in started:
            each.kill()
    assert codes == [0] * size, f"{way} of Python with {size} ranks: {codes}"


class Ddp(unittest.TestCase):
    def compare(self, size: int, way: str, steps: int = 40, within: float = 1e-6) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            torch.manual_seed(4)
            rows = torch.randn(ROWS, 16)
            start = Net().state_dict() | {"rows": rows, "labels": rows[:, :5].argmax(1)}
            save_file({key: value.clone() for key, value in start.items()}, folder / "start.safetensors")
            run([program, str(folder), way, str(steps)], size)
            run_python(folder, way, steps, size)
            found = load_file(folder / "frugal" / "model.safetensors")
            expected = load_file(folder / "python.safetensors")
            for key, value in expected.items():
                moved = (value - start[key]).abs().max().item()
                apart = (found[key] - value).abs().max().item()
                self.assertGreater(moved, 1e-4 if steps == 2 else 5e-3, key)
                self.assertLessEqual(apart, within, key)

    def test_two_processes(self):
        self.compare(2, "ddp")

    def test_four_processes(self):
        self.compare(4, "ddp")

    def test_bf16_on_the_wire(self):
        # Two processes: the order of more numbers depends on the buckets. Two steps: a difference of 1e-9 in a gradient
        # rounds to another number of 8 bits now and then, and 40 steps make 1e-3 of that.
        self.compare(2, "wire", steps=2)

    def test_factors_of_one_column(self):
        self.compare(4, "power1", steps=20, within=1e-5)

    def test_factors_of_four_columns(self):
        self.compare(2, "power4", steps=20, within=1e-5)
        self.compare(4, "power4", steps=20, within=1e-5)

    def test_sharded_states_of_two(self):
        self.compare(2, "zero")

    def test_sharded_states_of_four(self):
        self.compare(4, "zero")


if __name__ == "__main__":
    torch.set_num_threads(1)  # a forked process has none of the others
    program = sys.argv.pop(1)
    unittest.main()
