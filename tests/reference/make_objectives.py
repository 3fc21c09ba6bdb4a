# SPDX-License-Identifier: Apache-2.0
"""Writes objectives.json: PyTorch's losses over whole sets and their gradients with respect to the
output, which frugal's tests also put together from ragged windows."""

import torch
from reference import deterministic, number, table, values, write

IGNORED = -100


def labels_of(shape, classes: int, seed: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    flat = [int((number(seed, i) + 1) / 2 * classes) for i in range(count)]
    return torch.tensor(flat).view(shape)


def case(name: str, objective: str, output: torch.Tensor, target: torch.Tensor, loss, **options):
    """`loss(output)` is PyTorch's mean over the whole set."""
    output = output.clone().requires_grad_()
    value = loss(output)
    value.backward()
    is_whole = target.dtype == torch.int64
    return {
        "name": name,
        "objective": objective,
        "shape": list(output.shape),
        "output": values(output),
        "target_shape": list(target.shape),
        "target_is_whole": is_whole,
        "target": target.reshape(-1).tolist() if is_whole else values(target),
        "label_smoothing": options.get("label_smoothing", 0.0),
        "weight": options.get("weight", []),
        "pos_weight": options.get("pos_weight", []),
        "delta": options.get("delta", 1.0),
        "value": values(value)[0],
        "gradient": values(output.grad),
    }


def cross_entropy(name: str, output: torch.Tensor, target: torch.Tensor, **options) -> dict:
    weight = options.get("weight")
    module = torch.nn.CrossEntropyLoss(
        weight=None if weight is None else torch.tensor(weight),
        label_smoothing=options.get("label_smoothing", 0.0),
        ignore_index=IGNORED,
    )
    return case(name, "CrossEntropy", output, target, lambda x: module(x, target), **options)


def binary(name: str, output: torch.Tensor, target: torch.Tensor, **options) -> dict:
    def spread(which: str):
        if which not in options:
            return None
        weights = torch.tensor(options[which])
        return weights.view(-1, *[1] * (output.dim() - 2)) if output.dim() > 2 else weights

    module = torch.nn.BCEWithLogitsLoss(
        weight=spread("weight"), pos_weight=spread("pos_weight"), reduction="none"
    )

    def loss(x: torch.Tensor) -> torch.Tensor:
        # PyTorch ignores no label here: the mean is over those that are left.
        kept = target != IGNORED
        return module(x, target.float().clamp_min(0))[kept].mean()

    return case(name, "BinaryCrossEntropy", output, target, loss, **options)


def main() -> None:
    deterministic()
    logits = table((11, 4), 1, 1) * 3
    labels = labels_of((11,), 4, 11)
    ignored = labels.clone()
    ignored[2::3] = IGNORED
    tokens = table((6, 3, 5), 1, 2) * 3
    token_labels = labels_of((6, 5), 3, 12)
    token_labels[1, 2:] = IGNORED
    token_labels[4, :] = IGNORED
    probabilities = torch.softmax(table((11, 4), 1, 3), 1)
    weight = [0.25, 1.0, 3.0, 0.5]
    scores = table((13,), 2, 1) * 4
    two = labels_of((13,), 2, 21)
    two_ignored = two.clone()
    two_ignored[::4] = IGNORED
    many = table((7, 3), 2, 2) * 4
    many_labels = labels_of((7, 3), 2, 22).float()
    soft = (table((7, 3), 2, 3) + 1) / 2
    pixels = table((5, 2, 3), 2, 4) * 4
    pixel_labels = labels_of((5, 2, 3), 2, 23)
    pixel_labels[1] = IGNORED
    far = table((9, 2), 3, 1) * 3
    near = table((9, 2), 3, 2)
    regression = {
        "MeanSquaredError": torch.nn.MSELoss(),
        "L1": torch.nn.L1Loss(),
        "Huber": torch.nn.HuberLoss(delta=0.75),
    }
    write(
        "objectives.json",
        "make_objectives.py",
        {
            "ignored": IGNORED,
            "gradient": "of the value with respect to the output",
            "cases": [
                cross_entropy("labels", logits, labels),
                cross_entropy("weights", logits, labels, weight=weight),
                cross_entropy("weights, ignored labels", logits, ignored, weight=weight),
                cross_entropy("smoothing", logits, ignored, label_smoothing=0.1),
                cross_entropy(
                    "weights and smoothing", logits, ignored, weight=weight, label_smoothing=0.2
                ),
                cross_entropy(
                    "tokens", tokens, token_labels, weight=[2.0, 0.5, 1.0], label_smoothing=0.1
                ),
                cross_entropy("a class of weight 0", logits, labels, weight=[0.0, 1.0, 2.0, 1.0]),
                cross_entropy(
                    "probabilities", logits, probabilities, weight=weight, label_smoothing=0.1
                ),
                binary("one logit", scores, two),
                binary("one logit, weighted", scores, two, weight=[0.5], pos_weight=[3.0]),
                binary("ignored labels", scores, two_ignored, pos_weight=[3.0]),
                binary(
                    "several labels",
                    many,
                    many_labels,
                    weight=[0.5, 2.0, 1.0],
                    pos_weight=[3.0, 0.25, 1.0],
                ),
                binary("probabilities", many, soft, pos_weight=[3.0, 0.25, 1.0]),
                binary("pixels", pixels, pixel_labels, weight=[0.5, 2.0], pos_weight=[4.0, 1.0]),
            ]
            + [
                case(name, name, far, near, lambda x, module=module: module(x, near), delta=0.75)
                for name, module in regression.items()
            ],
        },
    )


if __name__ == "__main__":
    main()
