# SPDX-License-Identifier: Apache-2.0
"""A compared package: before it is written, its numbers are compared with those of eager PyTorch."""

from __future__ import annotations

import torch

from .errors import ExportError
from .load import load
from .loss import as_loss
from .trace import Job, Program, modes


def compare(job: Job, program: Program, path: str) -> None:
    """Runs a compiled program on the example and on smaller batches, and compares it with eager PyTorch.

    Narrows program.dimensions to the sizes that eager PyTorch takes as well: BatchNorm refuses one sample.
    """
    run = load(path, job.fields[0].device.type)
    for fields in _batches(job, program):
        with torch.random.fork_rng():
            try:
                expected = _eager(job, program, fields)
            except Exception:
                if fields is job.fields:
                    raise
                for entry in program.dimensions.values():
                    entry[0] = max(entry[0], 2)
                continue
            if _is_random(program):
                continue
            given = [tensor for name, tensor in zip(job.layout.names, fields) if name in program.fields]
            seed = [torch.ones((), device=given[0].device)] if program.kind == "step" else []
            made = dict(zip(program.outputs, run(*job.state.detached(), *given, *seed)))
        for name, tensor in expected.items():
            _require_close(name, made[name], tensor, program, fields)


def _batches(job: Job, program: Program):
    """The example, and the example with one sample less and with one, where its first dimension varies."""
    yield job.fields
    names = {axes[0] for axes in job.dynamic.values() if 0 in axes} & set(program.dimensions)
    for size in (lambda n: n - 1, lambda n: 1):
        fields = tuple(
            tensor.narrow(0, 0, size(tensor.size(0))).contiguous()
            if job.dynamic.get(name, {}).get(0) in names else tensor
            for name, tensor in zip(job.layout.names, job.fields))
        if names and all(a.shape != b.shape or a is b for a, b in zip(fields, job.fields)):
            yield fields


def _is_random(program: Program) -> bool:
    return any(node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
               for node in program.exported.graph.nodes)


def _eager(job: Job, program: Program, fields) -> dict[str, torch.Tensor]:
    """What eager PyTorch makes of the batch, by the names of the program's outputs."""
    state = job.state
    leaves = {name: tensor.detach().clone().requires_grad_() for name, tensor in state.trained.items()}
    own = {name: tensor.clone() for name, tensor in state.buffers.items()}
    fixed = {name: tensor.detach() for name, tensor in state.frozen.items()}
    training = program.kind == "step"

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = job.module

        def forward(self):
            return as_loss(job.loss(self.module, job.layout.batch(fields)))

    called = Called()
    with modes(job.module, training), torch.set_grad_enabled(training), job.context():
        loss = torch.func.functional_call(
            called, {f"module.{name}": tensor for name, tensor in {**leaves, **fixed, **own}.items()}, ())
    made = {"value": loss.value.detach().float().reshape(())}
    if loss.weight is not None:
        made["weight"] = torch.as_tensor(loss.weight).reshape(())
    if loss.output is not None:
        made["output"] = loss.output.detach()
    if training:
        gradients = torch.autograd.grad(loss.value.reshape(()), list(leaves.values()), allow_unused=True)
        made |= {f"gradient:{name}": gradient for name, gradient in zip(leaves, gradients) if gradient is not None}
        made |= {f"buffer:{name}": tensor for name, tensor in own.items()}
    return {name: tensor for name, tensor in made.items() if name in program.outputs}


def _require_close(name, made, expected, program, fields) -> None:
    made, expected = made.double().cpu(), expected.double().cpu()
    low = any(node.meta["val"].dtype in (torch.bfloat16, torch.float16) for node in program.exported.graph.nodes
              if isinstance(node.meta.get("val"), torch.Tensor))
    scale = max(1e-3, float(expected.abs().max()) if expected.numel() else 0)
    error = float((made - expected).abs().nan_to_num(nan=0).max()) if expected.numel() else 0
    same_nan = bool((made.isnan() == expected.isnan()).all())
    if same_nan and error <= (0.05 if low else 1e-3) * scale:
        return
    raise ExportError(
        f"the compiled program computes something else than PyTorch for '{name}'",
        where=f"the program '{program.kind}', a batch of {', '.join(str(tuple(f.shape)) for f in fields)}",
        why=f"they differ by {error:.3g}, and the largest number is {scale:.3g}",
        fix="Report this with the module; export_step(..., compare=False) writes the package all the same.",
    )
