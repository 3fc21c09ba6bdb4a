# SPDX-License-Identifier: Apache-2.0
"""Writes segmentation.json: intersection over union, Dice and calibration errors of torchmetrics and scikit-learn on
whole sets, which frugal's tests go through in ragged batches."""

import math
import warnings

import numpy as np
import sklearn.metrics as sk
import torch
import torchmetrics
import torchmetrics.functional.classification as tm
import torchmetrics.functional.segmentation as seg
from reference import deterministic, number, table, values, write

IGNORED = -100


def labels_of(shape, classes: int, seed: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return torch.tensor([int((number(seed, i) + 1) / 2 * classes) for i in range(count)]).view(shape)


def close(ours: float, theirs) -> float:
    """Both libraries have to agree before either is a reference."""
    assert math.isclose(ours, float(theirs), abs_tol=2e-6), (ours, float(theirs))
    return float(ours)


def of_confidences(confidence: np.ndarray, right: np.ndarray, l1, largest) -> dict:
    """The errors in float64, of confidences in float32 and torchmetrics' bins; torchmetrics adds up in float32."""
    edges = torch.linspace(0, 1, 16)
    place = (torch.bucketize(torch.tensor(confidence), edges, right=True) - 1).numpy()
    gaps, counts = np.zeros(16), np.zeros(16)
    for bin in range(16):
        here = place == bin
        counts[bin] = here.sum()
        if counts[bin]:
            gaps[bin] = abs(right[here].mean(dtype=np.float64) - confidence[here].mean(dtype=np.float64))
    return {
        "ece": close((gaps * counts).sum() / counts.sum(), l1),
        "mce": close(gaps.max(), largest),
    }


def of_classes(output: torch.Tensor, target: torch.Tensor) -> dict:
    classes = output.shape[1]
    flat = target.reshape(-1)
    kept = flat != IGNORED
    labels = flat[kept].numpy()
    predicted = output.argmax(1).reshape(-1)[kept].numpy()
    there = sorted(set(labels.tolist()) | set(predicted.tolist()))
    both = {"num_classes": classes, "ignore_index": IGNORED}

    iou = np.full(classes, np.nan)
    iou[there] = sk.jaccard_score(labels, predicted, labels=there, average=None)
    dice = np.full(classes, np.nan)
    dice[there] = sk.f1_score(labels, predicted, labels=there, average=None)
    global_dice = seg.dice_score(
        torch.tensor(predicted)[None, :], torch.tensor(labels)[None, :], num_classes=classes,
        input_format="index", average="macro", aggregation_level="global",
    )
    confidence = output.softmax(1).amax(1).reshape(-1)[kept].numpy()
    calibration = {
        norm: tm.multiclass_calibration_error(output, target, n_bins=15, norm=norm, **both)
        for norm in ["l1", "max"]
    }
    # Labels of class 0 are left out, and so is the class, which may still be predicted.
    foreground = labels != 0
    of_others = [c for c in there if c != 0 and (c in labels or c in predicted[foreground])]
    without = {"labels": of_others, "average": "macro"}
    return {
        "iou_without_0": close(
            sk.jaccard_score(labels[foreground], predicted[foreground], **without),
            tm.multiclass_jaccard_index(
                torch.tensor(predicted), torch.tensor(labels), classes, average="macro", ignore_index=0
            ),
        ),
        "dice_without_0": float(sk.f1_score(labels[foreground], predicted[foreground], **without)),
        "iou": close(np.nanmean(iou), tm.multiclass_jaccard_index(output, target, average="macro", **both)),
        "dice": close(np.nanmean(dice), global_dice),
        "iou_of_classes": [None if math.isnan(x) else x for x in iou.tolist()],
        "dice_of_classes": [None if math.isnan(x) else x for x in dice.tolist()],
    } | of_confidences(confidence, predicted == labels, calibration["l1"], calibration["max"])


def of_two(scores: torch.Tensor, target: torch.Tensor) -> dict:
    kept = target != IGNORED
    labels, score = target[kept].numpy(), scores[kept]
    predicted = (score > 0).int().numpy()
    probabilities = torch.sigmoid(scores)
    calibration = {
        norm: tm.binary_calibration_error(probabilities, target, n_bins=15, norm=norm, ignore_index=IGNORED)
        for norm in ["l1", "max"]
    }
    return {
        "iou": float(sk.jaccard_score(labels, predicted, average="macro")),
        "dice": float(sk.f1_score(labels, predicted, average="macro")),
        "iou_of_classes": sk.jaccard_score(labels, predicted, average=None).tolist(),
        "dice_of_classes": sk.f1_score(labels, predicted, average=None).tolist(),
    } | of_confidences(probabilities[kept].numpy(), labels == 1, calibration["l1"], calibration["max"])


def case(name: str, output: torch.Tensor, target: torch.Tensor, measure) -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are not there
        found = measure(output, target)
    return {
        "name": name,
        "shape": list(output.shape),
        "output": values(output),
        "target_shape": list(target.shape),
        "target": target.reshape(-1).tolist(),
    } | found


def main() -> None:
    deterministic()
    pixels = table((7, 4, 3, 5), 11, 1) * 4
    pixel_labels = labels_of((7, 3, 5), 4, 101)
    ignored = pixel_labels.clone()
    ignored[2] = IGNORED
    ignored[:, :, ::2] = IGNORED
    # Class 3 is predicted and no label; class 4 is neither; class 2 is a label and never predicted.
    absent = table((9, 5, 4), 11, 2)
    absent[:, 4] = -3
    absent[:, 2] = -2
    sure = table((23, 3), 11, 3) * 60
    scores = (table((31,), 12, 1) * 8).round() / 2
    two = labels_of((31,), 2, 104)
    two[::6] = IGNORED
    write(
        "segmentation.json",
        "make_segmentation.py",
        {
            "torchmetrics": torchmetrics.__version__,
            "ignored": IGNORED,
            "values": "of scikit-learn in float64, and torchmetrics' agree; of calibration in float64 from float32 "
            "confidences, and torchmetrics', which adds up in float32, agree; null: a class that is nowhere",
            "classes": [
                case("pixels", pixels, pixel_labels, of_classes),
                case("ignored pixels", pixels, ignored, of_classes),
                case("classes that are absent", absent, labels_of((9, 4), 3, 102), of_classes),
                case("probabilities of 1", sure, labels_of((23,), 3, 103), of_classes),
            ],
            "two": [case("one logit", scores, two, of_two)],
        },
    )


if __name__ == "__main__":
    main()
