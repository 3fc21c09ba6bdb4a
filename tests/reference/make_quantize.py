# SPDX-License-Identifier: Apache-2.0
"""Writes quantize.json: fake quantization of torch.ao, integers of torch.quantize_*, and ranges of ONNX Runtime.

Needs requirements/quantize.txt.
"""

import numpy as np
import torch
from onnxruntime.quantization.calibrate import HistogramCollector
from torch.ao.quantization import FakeQuantize, MinMaxObserver, MovingAverageMinMaxObserver
from torch.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize
from reference import deterministic, table, values, write

INPUTS, OUTPUTS, ROWS = 24, 16, 6


def moving() -> dict:
    """Three training batches and one evaluation, with a fake quantizer of observer and rounding."""
    fake = FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8,
                        averaging_constant=0.25)  # fmt: skip
    batches = [table([ROWS, INPUTS], 60, i) * (i + 1) + 0.3 for i in range(4)]
    outputs = []
    for i, batch in enumerate(batches):
        if i == 3:
            fake.disable_observer()
        batch.requires_grad_()
        rounded = fake(batch)
        rounded.sum().backward()
        outputs.append({"input": values(batch), "output": values(rounded), "gradient": values(batch.grad),
                        "scale": values(fake.scale)[0], "zero_point": int(fake.zero_point[0])})  # fmt: skip
    return {"averaging": 0.25, "steps": outputs}


def weights() -> dict:
    """Rows of a weight by their largest magnitude, on -127 to 127."""
    weight = table([OUTPUTS, INPUTS], 61, 0)
    weight[3] = 0
    weight.requires_grad_()
    scale = (weight.detach().abs().amax(1) / 127).clamp_min(1e-12)
    zero = torch.zeros(OUTPUTS, dtype=torch.int32)
    rounded = torch.fake_quantize_per_channel_affine(weight, scale, zero, 0, -127, 127)
    rounded.sum().backward()
    integers = torch.quantize_per_channel(weight.detach(), scale, zero, 0, torch.qint8).int_repr()
    return {"weight": values(weight), "scale": values(scale), "rounded": values(rounded),
            "gradient": values(weight.grad), "integers": values(integers)}  # fmt: skip


def learned() -> dict:
    """One step of a learned scale and zero point, of an input."""
    fake = _LearnableFakeQuantize(MinMaxObserver, quant_min=0, quant_max=255, scale=0.01, zero_point=100.0,
                                  dtype=torch.quint8, use_grad_scaling=True)  # fmt: skip
    fake.enable_param_learning()
    batch = (table([ROWS, INPUTS], 62, 0) * 2).requires_grad_()
    rounded = fake(batch)
    (rounded * table([ROWS, INPUTS], 62, 1)).sum().backward()
    return {"input": values(batch), "up": values(table([ROWS, INPUTS], 62, 1)), "scale": 0.01, "zero_point": 100.0,
            "output": values(rounded), "gradient": values(batch.grad), "of_scale": values(fake.scale.grad)[0],
            "of_zero_point": values(fake.zero_point.grad)[0]}  # fmt: skip


def static() -> dict:
    """A linear layer of torch's integers, its range that of its inputs."""
    batch = table([ROWS, INPUTS], 63, 0) + 0.2
    observer = MinMaxObserver(dtype=torch.quint8)
    observer(batch)
    scale, zero_point = observer.calculate_qparams()
    integers = torch.quantize_per_tensor(batch, scale, zero_point, torch.quint8)
    made = weights()
    weight = torch.tensor(made["integers"]).view(OUTPUTS, INPUTS).double() * torch.tensor(made["scale"])[:, None]
    bias = table([OUTPUTS], 63, 1)
    exact = (integers.int_repr().double() - int(zero_point)) * float(scale) @ weight.T + bias
    return {"input": values(batch), "scale": values(scale)[0], "zero_point": int(zero_point),
            "integers": values(integers.int_repr()), "weight": made["weight"], "bias": values(bias),
            "output": values(exact)}  # fmt: skip


def ranges() -> list[dict]:
    """Histograms with long tails, and where they are clipped."""
    chance = np.random.default_rng(1)
    cases = []
    for name, seen in (("Laplace", chance.laplace(0, 1, 20000)), ("Student", chance.standard_t(3, 20000)),
                       ("of one side", np.abs(chance.laplace(0.2, 1, 20000)))):  # fmt: skip
        for symmetric, bins in ((False, 64), (True, 512)):
            if symmetric and name == "of one side":
                continue  # its best candidates are closer than the rounding of ONNX Runtime's float32
            most = np.abs(seen).max()
            over = (-most, most) if symmetric else (seen.min(), seen.max())
            counts, edges = np.histogram(seen, bins=bins, range=over)
            case = {"name": f"{name}, {bins} bins", "low": float(over[0]), "high": float(over[1]),
                    "counts": counts.tolist()}  # fmt: skip
            collector = HistogramCollector("entropy" if symmetric else "percentile", symmetric, bins, 128, 99.9, "same")
            if symmetric:
                found = collector.get_entropy_threshold((counts, edges, *over), 128)
                case["entropy"] = [float(found[0]), float(found[1])]
            else:
                collector.histogram_dict = {"x": (counts, edges, *over)}
                found = collector.compute_percentile()["x"]
                case |= {"percent": 99.9, "percentile": [float(found[0]), float(found[1])]}
            cases.append(case)
    return cases


def main() -> None:
    deterministic()
    write("quantize.json", "make_quantize.py",
          {"inputs": INPUTS, "outputs": OUTPUTS, "rows": ROWS, "moving": moving(), "weights": weights(),
           "learned": learned(), "static": static(), "ranges": ranges()})  # fmt: skip


if __name__ == "__main__":
    main()
