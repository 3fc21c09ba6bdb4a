# SPDX-License-Identifier: Apache-2.0
"""Writes quantized_training.json: torchao's INT8 and FP8 training of a linear layer, forward and backward.

INT8 is torchao.prototype.quantized_training's int8_mixed_precision_training, on torch._int_mm. FP8 is
torchao.float8, recipes "tensorwise" and "rowwise", emulated: its products are those of the rounded numbers in
FP32. Needs requirements/quantize.txt.
"""

import torch
from torchao.float8 import Float8LinearConfig
from torchao.float8.float8_linear import Float8Linear
from torchao.prototype.quantized_training import Int8MixedPrecisionTrainingConfig
from torchao.quantization import quantize_
from reference import deterministic, table, values, write

SHAPES = {"plain": ([6, 24], 16), "sequences": ([2, 8, 16], 32), "rows of outliers and zeros": ([16, 32], 16)}


def inputs(name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    sizes, outputs = SHAPES[name]
    index = list(SHAPES).index(name)
    rows = table(sizes, 50, index)
    weight = table([outputs, sizes[-1]], 51, index) / 4
    gradient = table(sizes[:-1] + [outputs], 53, index) / 100
    if name.startswith("rows"):
        rows[0, 3] = 40
        rows[1] = 0
        weight[2] = 0
        weight[:, 5] = 0
        gradient[3] = 0
    return rows, weight, table([outputs], 52, index), gradient


def layer(weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Linear:
    made = torch.nn.Linear(weight.shape[1], weight.shape[0])
    made.weight.data.copy_(weight)
    made.bias.data.copy_(bias)
    return made


def quantized(recipe: str, net: torch.nn.Sequential) -> torch.nn.Module:
    if recipe == "int8":
        # As modules: of torchao 0.18's tensor subclass, F.linear computes in FP32.
        quantize_(net, Int8MixedPrecisionTrainingConfig(module_swap=True))
        return net
    config = Float8LinearConfig.from_recipe_name(recipe)
    object.__setattr__(config, "emulate", True)
    return torch.nn.Sequential(Float8Linear.from_float(net[0], config))


def case(recipe: str, name: str) -> dict:
    rows, weight, bias, gradient = inputs(name)
    net = quantized(recipe, torch.nn.Sequential(layer(weight, bias)))
    rows.requires_grad_()
    output = net(rows)
    assert not torch.allclose(output, torch.nn.functional.linear(rows, weight, bias), rtol=1e-5, atol=1e-6)
    output.backward(gradient)
    of = {key: parameter.grad for key, parameter in net[0].named_parameters()}
    return {"name": f"{recipe}, {name}", "recipe": recipe, "input": values(rows), "sizes": list(rows.shape),
            "weight": values(weight), "bias": values(bias), "gradient": values(gradient),
            "output": values(output), "of_input": values(rows.grad), "of_weight": values(of["weight"]),
            "of_bias": values(of["bias"])}  # fmt: skip


def main() -> None:
    deterministic()
    cases = [case("int8", name) for name in SHAPES]
    # FP8 kernels take multiples of 16.
    cases += [case(recipe, name) for recipe in ("tensorwise", "rowwise") for name in list(SHAPES)[1:]]
    write("quantized_training.json", "make_quantized_training.py", {"cases": cases})


if __name__ == "__main__":
    main()
