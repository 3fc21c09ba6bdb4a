#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_files.json: files of torch.save, with the bytes of their tensors, or what they name that is no tensor.

The files with code are never loaded here: Python's pickle would run them.
"""

import argparse
import io
import os

import numpy as np
import torch
from reference import deterministic, table, write


def saved(content, **how) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **how)
    return file.getvalue()


def tensors_of(state: dict) -> dict:
    """[type, shape, row-major bytes] of each."""
    found = {}
    for name, tensor in state.items():
        data = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        found[name] = [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), data.hex()]
    return found


def model() -> torch.nn.Module:
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for number, each in enumerate(net.parameters()):
            each.copy_(table(each.shape, 32, number))
    return net


def every_type() -> dict:
    types = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
             torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn,
             torch.float8_e5m2, torch.complex64, torch.complex128]  # fmt: skip
    return {f"t{number}": (torch.arange(3) % 2 if each == torch.bool else torch.arange(3) + number).to(each)
            for number, each in enumerate(types)}  # fmt: skip


def views() -> dict:
    whole = table([6, 4], 32, 9)
    return {"whole": whole, "t": whole.t(), "row": whole[2], "columns": whole[:, 1:3], "alike": whole[0].expand(2, 4),
            "empty": torch.empty(0, 3), "scalar": torch.tensor(3.5),
            "parameter": torch.nn.Parameter(table([2], 32, 10))}  # fmt: skip


class Code:
    def __reduce__(self):
        return os.system, ("touch pwned",)


class Evaluated:
    def __reduce__(self):
        return eval, ("open('pwned', 'w')",)


def main() -> None:
    deterministic()
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    net(table([5, 3], 32, 8)).sum().backward()
    optimizer.step()
    state = net.state_dict()
    assert hasattr(state, "_metadata")
    run = {"epoch": 3, "best": 0.5, "name": "run", "flags": [True, None, (1, -2, 2**40)], "shape": torch.Size([2, 3]),
           "device": torch.device("cpu"), "type": torch.float16, "optimizer": optimizer.state_dict()}  # fmt: skip

    cases = [
        {"name": f"a state dict, protocol {number}", "file": saved(state, pickle_protocol=number).hex(),
         "tensors": tensors_of(state)} for number in (2, 3, 4, 5)
    ]  # fmt: skip
    for name, key, within in (("alone", "state_dict", ""), ("named", "ema", "ema")):
        cases.append({"name": f"a run, its state dict {name}", "file": saved({**run, key: state}).hex(),
                      "within": within, "tensors": tensors_of(state)})  # fmt: skip
    for name, content in (("every type", every_type()), ("views", views())):
        cases.append({"name": name, "file": saved(content).hex(), "tensors": tensors_of(content)})
    small = {"w": torch.ones(2)}
    for what, content, number in (
        ("posix.system", {**small, "x": Code()}, 2),
        ("posix.system", {**small, "x": Code()}, 4),
        ("__builtin__.eval", [Evaluated(), small], 2),
        ("builtins.eval", [Evaluated(), small], 5),
        ("torch.nn.modules.linear.Linear", torch.nn.Linear(1, 1), 2),
        ("argparse.Namespace", {"state_dict": small, "args": argparse.Namespace(lr=1)}, 2),
        ("numpy", {"state_dict": small, "loss": np.float64(1)}, 4),
    ):
        cases.append({"name": f"{what}, protocol {number}", "file": saved(content, pickle_protocol=number).hex(),
                      "error": f"it names {what}"})  # fmt: skip
    # Its beginning: what follows has addresses of this process.
    old = saved(small, _use_new_zipfile_serialization=False)[:32]
    cases.append({"name": "before 1.6", "file": old.hex(),
                  "error": "torch.save before PyTorch 1.6"})  # fmt: skip
    write("torch_files.json", "make_torch_files.py", {"cases": cases})


if __name__ == "__main__":
    main()
