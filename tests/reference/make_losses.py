# SPDX-License-Identifier: Apache-2.0
"""Writes losses.json: losses of torchvision and torch.nn over whole sets, or written as in the papers, and their
gradients with respect to the output, which frugal's tests also put together from ragged windows."""

import torch
import torch.nn.functional as F
import torchvision
from make_objectives import labels_of
from reference import deterministic, table, values, write
from torchvision.ops import sigmoid_focal_loss

IGNORED = -100


def case(name: str, objective: str, output: torch.Tensor, target: torch.Tensor, loss, **options) -> dict:
    """`loss(output)` is the mean over the whole set."""
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
        "value": values(value)[0],
        "gradient": values(output.grad),
    } | options


def sigmoid_focal(name: str, output: torch.Tensor, target: torch.Tensor, alpha=0.25, gamma=2.0) -> dict:
    kept = target != IGNORED

    def loss(x):
        return sigmoid_focal_loss(x[kept], target.float()[kept], alpha=alpha, gamma=gamma, reduction="mean")

    return case(name, "Focal", output, target, loss, alpha=alpha, gamma=gamma, weight=[])


def softmax_focal(name: str, output: torch.Tensor, target: torch.Tensor, gamma=2.0, weight=()) -> dict:
    """As sigmoid_focal_loss: cross entropy times (1 - p)^gamma, in float64."""

    def loss(x):
        nll = F.cross_entropy(x.double(), target, reduction="none", ignore_index=IGNORED)
        each = nll * (1 - torch.exp(-nll)) ** gamma
        if weight:
            each = each * torch.tensor(weight).double()[target.clamp_min(0)]
        return each[target != IGNORED].mean().float()

    return case(name, "Focal", output, target, loss, alpha=0.25, gamma=gamma, weight=list(weight))


def dice(name: str, output: torch.Tensor, target: torch.Tensor, smooth=1e-5) -> dict:
    """V-Net, equation 2, of each class, in float64."""
    kept = target != IGNORED

    def loss(x):
        x = x.double()
        if x.dim() == target.dim():
            p, g = torch.sigmoid(x)[kept][:, None], target[kept].double()[:, None]
        else:
            p = torch.softmax(x, 1).movedim(1, -1)[kept]
            g = F.one_hot(target[kept], x.shape[1]).double()
        both = (p * g).sum(0)
        of_classes = (2 * both + smooth) / ((p * p).sum(0) + (g * g).sum(0) + smooth)
        return (1 - of_classes.mean()).float()

    return case(name, "DiceLoss", output, target, loss, smooth=smooth)


def ctc(name: str, output: torch.Tensor, target: torch.Tensor, lengths, blank=0, zero_infinity=False) -> dict:
    """PyTorch's labels: those that are not -100, one sample after the other."""
    kept = target != IGNORED
    module = torch.nn.CTCLoss(blank=blank, zero_infinity=zero_infinity)

    def loss(x):
        return module(x.permute(2, 0, 1).log_softmax(2), target[kept], torch.tensor(lengths), kept.sum(1))

    return case(name, "Ctc", output, target, loss, lengths=lengths, blank=blank, zero_infinity=zero_infinity)


def triplet(name: str, output: torch.Tensor, **options) -> dict:
    module = torch.nn.TripletMarginLoss(**options)
    options = {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False} | options
    return case(name, "Triplet", output, torch.zeros(output.shape[0]), lambda x: module(x[:, 0], x[:, 1], x[:, 2]),
                **options)


def contrastive(name: str, output: torch.Tensor, temperature: float) -> dict:
    """SimCLR, algorithm 1, in float64, a view at a time."""

    def loss(x):
        z = F.normalize(x.double().flatten(0, 1), dim=1)
        s = z @ z.T / temperature
        total = 0
        for i in range(len(z)):
            others = [k for k in range(len(z)) if k != i]
            total = total + torch.logsumexp(s[i, others], 0) - s[i, i ^ 1]
        return (total / len(z)).float()

    return case(name, "Contrastive", output, torch.zeros(output.shape[0]), loss, temperature=temperature)


def main() -> None:
    deterministic()
    scores = table((13,), 21, 1) * 6
    two = labels_of((13,), 2, 201)
    two_ignored = two.clone()
    two_ignored[::4] = IGNORED
    many = table((7, 3), 21, 2) * 5
    many_labels = labels_of((7, 3), 2, 202).float()
    soft = (table((7, 3), 21, 3) + 1) / 2
    logits = table((11, 4), 21, 4) * 4
    labels = labels_of((11,), 4, 203)
    pixels = table((6, 3, 4, 5), 21, 5) * 3
    pixel_labels = labels_of((6, 4, 5), 3, 204)
    pixel_labels[1, 2:] = IGNORED
    pixel_labels[4] = IGNORED
    absent = labels_of((11,), 2, 205)
    steps = table((5, 6, 9), 22, 1) * 3
    text = labels_of((5, 4), 5, 206) + 1
    text[1, 2:] = IGNORED
    text[3, 1:] = IGNORED
    repeated = text.clone()
    repeated[0] = 2
    gaps = text.clone()
    gaps[2, 1] = IGNORED
    none = text.clone()
    none[2] = IGNORED
    lengths = [9, 5, 7, 9, 8]
    triplets = table((7, 3, 5), 23, 1)
    views = table((6, 2, 5), 23, 2) * 2
    write(
        "losses.json",
        "make_losses.py",
        {
            "torchvision": torchvision.__version__.split("+")[0],
            "ignored": IGNORED,
            "gradient": "of the value with respect to the output",
            "cases": [
                sigmoid_focal("one logit", scores, two),
                sigmoid_focal("ignored labels", scores, two_ignored, alpha=0.6, gamma=1.5),
                sigmoid_focal("without alpha", many, many_labels, alpha=-1, gamma=3.0),
                sigmoid_focal("gamma 0", many, many_labels, alpha=0.25, gamma=0.0),
                sigmoid_focal("probabilities", many, soft),
                softmax_focal("four classes", logits, labels),
                softmax_focal("weights", logits, labels, gamma=0.5, weight=[0.5, 2.0, 1.0, 3.0]),
                softmax_focal("pixels", pixels, pixel_labels, gamma=1.0),
                dice("four classes", logits, labels),
                dice("pixels", pixels, pixel_labels),
                dice("absent classes", logits, absent, smooth=1.0),
                dice("one logit", scores, two),
                dice("one logit, ignored labels", scores, two_ignored, smooth=0.5),
                ctc("all positions", steps, text, [9] * 5),
                ctc("lengths", steps, text, lengths),
                ctc("another blank", steps, (text - 1).masked_fill(text == IGNORED, IGNORED), lengths, blank=5),
                ctc("repeated labels", steps, repeated, lengths),
                ctc("gaps in the labels", steps, gaps, lengths),
                ctc("a sample without labels", steps, none, lengths),
                ctc("infinite losses are zero", steps, text, [9, 1, 7, 9, 3], zero_infinity=True),
                triplet("triplets", triplets),
                triplet("another norm, swapped", triplets, margin=0.5, p=1.0, swap=True),
                triplet("a large margin", triplets, margin=4.0, p=3.0),
                contrastive("views", views, 0.5),
                contrastive("a low temperature", views, 0.07),
                contrastive("one sample", views[:1], 0.5),
            ],
        },
    )


if __name__ == "__main__":
    main()
