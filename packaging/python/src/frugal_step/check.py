# SPDX-License-Identifier: Apache-2.0
"""A compared package: before it is written, its numbers are compared with those of eager PyTorch."""

from __future__ import annotations

import itertools

import torch

from .errors import ExportError
from .load import load
from .program import Program
from .refusal import describe
from .state import Replaced, modes
from .steady import untouched
from .trace import Job


def compare(job: Job, program: Program, path: str) -> None:
    """Runs a compiled program on the example and on batches of other sizes, and compares it with eager PyTorch.

    Narrows program.dimensions to the sizes that eager PyTorch takes as well: BatchNorm refuses one sample.
    """
    run = load(path, job.fields[0].device.type)
    _compare_one(job, program, run, job.fields)
    for name in list(program.dimensions):
        _try_one(job, program, run, name)
        limits, example = program.dimensions[name], _size(job, name)
        for size in sorted({1, 2, example - 1, example + 3}):
            if size == example or not limits[0] <= size <= limits[1]:
                continue
            fields = _resized(job, name, size)
            try:
                expected = _eager(job, program, fields)
            except Exception:
                # Sizes are tried from the smallest on: a larger one that fails ends the range.
                limits[0 if size < example else 1] = size + 1 if size < example else example
                continue
            _compare_one(job, program, run, fields, expected)


def _try_one(job: Job, program: Program, run, name: str) -> None:
    """Takes a size of 1 as well if the numbers are right: operators ask whether a size is 1 without computing
    something else then."""
    if name not in program.ones or program.dimensions[name][0] != 2:
        return
    fields = _resized(job, name, 1)
    try:
        _compare_one(job, program, run, fields)
    except Exception:
        return
    program.dimensions[name][0] = 1


def _size(job: Job, name: str) -> int:
    return next(tensor.size(axis) for field, tensor in zip(job.layout.names, job.fields)
                for axis, given in job.dynamic.get(field, {}).items() if given == name)


def _resized(job: Job, name: str, size: int):
    """The example with another size in a dimension: cut, or with its beginning once more."""
    made = []
    for field, tensor in zip(job.layout.names, job.fields):
        for axis, given in job.dynamic.get(field, {}).items():
            if given == name:
                numbers = torch.arange(size, device=tensor.device) % tensor.size(axis)
                tensor = tensor.index_select(axis, numbers)
        made.append(tensor.contiguous())
    return tuple(made)


def _compare_one(job: Job, program: Program, run, fields, expected=None) -> None:
    expected = expected or _eager(job, program, fields)
    named = dict(zip(job.layout.names, fields))
    inputs = [*job.state.detached(), *[named[name] for name in program.fields]]
    if program.kind == "step":
        inputs.append(torch.ones((), dtype=torch.float32, device=fields[0].device))
    kept = [tensor.clone() for tensor in inputs]
    made = _run(run, inputs, program, fields)
    for name, tensor in zip(program.outputs, made):
        if name not in expected:
            _fail(program, fields, name, "eager PyTorch has no such number")
        _require_close(name, tensor, expected, program, fields)
    missing = expected.keys() - set(program.outputs)
    if missing:
        _fail(program, fields, sorted(missing)[0], "the package does not compute it")
    _require_separate(program, fields, inputs, made)
    _require_layouts(job, program, fields, made)
    # C++ changes gradients in place: the next step must not see it.
    for tensor in made:
        tensor.fill_(7)
    again = _run(run, inputs, program, fields)
    for name, tensor in zip(program.outputs, again):
        _require_close(name, tensor, expected, program, fields)
    for before, now in zip(kept, inputs):
        if not torch.equal(before.double().nan_to_num(), now.double().nan_to_num()):
            _fail(program, fields, "an input", "the program changes it")


def _run(run, inputs, program: Program, fields):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            return run(*inputs)
        except RuntimeError as error:
            raise ExportError(
                "the compiled program fails",
                where=_where(program, fields),
                why=f"{describe(error)}; its own message is on the standard error",
                fix="Report this with the module, and compute the same with other operators.",
            ) from error


def _eager(job: Job, program: Program, fields) -> dict[str, torch.Tensor]:
    """What eager PyTorch makes of the batch, by the names of the program's outputs."""
    state, training = job.state, program.kind == "step"
    leaves = [tensor.detach().clone().requires_grad_(training) for tensor in state.trained.values()]
    fixed = [tensor.detach().clone() for tensor in state.frozen.values()]
    own = [tensor.clone() for tensor in state.buffers.values()]
    constants = [tensor.clone() for tensor in state.fixed()]
    fields = [tensor.clone() for tensor in fields]
    with untouched(job.module), modes(job.module, training), torch.set_grad_enabled(training):
        torch.manual_seed(0)
        with Replaced(job.module, state, [*leaves, *fixed, *own], constants) as replaced:
            loss = job.loss_of(fields)
            gradients = torch.autograd.grad(loss.value.reshape(()), leaves, allow_unused=True) if training else ()
            buffers = replaced.buffers()
        made = {"value": loss.value.detach().float().reshape(())}
        if "index" in program.outputs:
            made["index"] = torch.zeros((), dtype=torch.int64)
        if loss.weight is not None:
            made["weight"] = loss.weight_tensor()
        if loss.output is not None:
            made["output"] = loss.output.detach()
        if training:
            made |= {f"gradient:{name}": gradient for name, gradient in zip(state.trained, gradients)
                     if gradient is not None}
            made |= {f"buffer:{name}": now for name, now in zip(state.buffers, buffers)}
    if program.kind == "predict":
        return {name: made[name] for name in program.outputs}
    unchanged = [f"buffer:{name}" for name, before in state.buffers.items()
                 if f"buffer:{name}" in made and torch.equal(made[f"buffer:{name}"], before)]
    for name in ["output", *unchanged]:
        if name not in program.outputs:
            made.pop(name, None)
    return made


def _require_close(name, made, expected, program: Program, fields) -> None:
    reference = expected[name]
    if made.shape != reference.shape or made.dtype != reference.dtype:
        _fail(program, fields, name, f"it is {tuple(made.shape)} of {made.dtype}, and should be "
                                     f"{tuple(reference.shape)} of {reference.dtype}")
    made, reference = made.double().cpu(), reference.double().cpu()
    if not made.numel():
        return
    if not torch.equal(made.isnan(), reference.isnan()):
        _fail(program, fields, name, f"{int(made.isnan().sum())} of its numbers are not a number, and "
                                     f"{int(reference.isnan().sum())} should be")
    tolerance = _tolerance(program)
    # Gradients that are nothing but rounding errors have the size of those of the others.
    peers = [tensor for other, tensor in expected.items() if other.split(":")[0] == name.split(":")[0]]
    largest = max(float(tensor.detach().abs().double().nan_to_num(posinf=0).max()) for tensor in peers if tensor.numel())
    both = made.nan_to_num(posinf=1e300, neginf=-1e300), reference.nan_to_num(posinf=1e300, neginf=-1e300)
    difference = (both[0] - both[1]).abs()
    scale = float(both[1].abs().max())
    if float(difference.max()) > tolerance * scale + 1e-2 * tolerance * largest:
        _fail(program, fields, name, f"they differ by {float(difference.max()):.3g}, and the largest number is "
                                     f"{scale:.3g}")


def _tolerance(program: Program) -> float:
    types = {node.meta["val"].dtype for node in program.exported.graph.nodes
             if isinstance(node.meta.get("val"), torch.Tensor)}
    if types & {torch.bfloat16, torch.float16}:
        return 0.05
    return 1e-3 if torch.float32 in types else 1e-9


def _require_separate(program: Program, fields, inputs, made) -> None:
    """Refuses outputs that share memory, or that C++ could not change in place."""
    names = [*["an input"] * len(inputs), *program.outputs]
    seen = {}
    for name, tensor in zip(names, itertools.chain(inputs, made)):
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            continue
        if storage.data_ptr() in seen and name != "an input":
            _fail(program, fields, name, f"it shares memory with {seen[storage.data_ptr()]}")
        seen[storage.data_ptr()] = name


def _require_layouts(job: Job, program: Program, fields, made) -> None:
    """Refuses gradients and buffers that are not laid out as what they belong to."""
    own = dict(zip(job.state.names(), job.state.tensors()))
    for name, tensor in zip(program.outputs, made):
        like = own.get(name.partition(":")[2])
        strides = [] if like is None else [
            (a, b) for size, a, b in zip(like.shape, tensor.stride(), like.stride()) if size > 1]
        if any(a != b for a, b in strides):
            _fail(program, fields, name, f"its strides are {tensor.stride()}, and should be {like.stride()}")


def _fail(program: Program, fields, name, why):
    raise ExportError(
        f"the compiled program computes something else than PyTorch for '{name}'",
        where=_where(program, fields),
        why=why,
        fix="Report this with the module; export_step(..., compare=False) writes the package all the same.",
    )


def _where(program: Program, fields) -> str:
    return f"the program '{program.kind}', a batch of {', '.join(str(tuple(field.shape)) for field in fields)}"
