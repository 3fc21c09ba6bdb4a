# SPDX-License-Identifier: Apache-2.0
"""Writes detection.json: COCO's average precision of boxes, by pycocotools; torchmetrics' agrees."""

import contextlib
import io
import math

import numpy as np
import pycocotools
import torch
import torchmetrics
from importlib.metadata import version
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from reference import deterministic, number, write
from torchmetrics.detection import MeanAveragePrecision


def boxes_of(count: int, seed: int, size: float) -> list[list[float]]:
    """Corners on quarters of a pixel: every product of theirs is exact in float32."""
    found = []
    for i in range(count):
        x, y, w, h = ((number(seed, i, k) + 1) / 2 for k in range(4))
        left, top = round(x * size * 4) / 4, round(y * size * 4) / 4
        found.append([left, top, left + round(w * 80 + 4) / 4, top + round(h * 80 + 4) / 4])
    return found


def image(seed: int, targets: int, classes: int, extra: int, moved: float, ties: bool = False) -> dict:
    """Targets, and predictions near them, with others that match none."""
    of_target = boxes_of(targets, seed, 60)
    labels = [int((number(seed, 900 + i) + 1) / 2 * classes) for i in range(targets)]
    predicted, scores, guesses = [], [], []
    for i, box in enumerate(of_target):
        for copy in range(1 + (i % 3 == 0)):
            shift = [round(number(seed, i, copy, 50 + k) * moved * 4) / 4 for k in range(4)]
            near = [a + b for a, b in zip(box, shift)]
            predicted.append([near[0], near[1], max(near[2], near[0] + 1), max(near[3], near[1] + 1)])
            scores.append((number(seed, i, copy, 7) + 1) / 2)
            wrong = number(seed, i, copy, 8) > 0.8
            guesses.append((labels[i] + int(wrong)) % classes)
    predicted += boxes_of(extra, seed + 1000, 60)
    scores += [(number(seed, i, 9) + 1) / 2 for i in range(extra)]
    guesses += [int((number(seed, i, 10) + 1) / 2 * classes) for i in range(extra)]
    if ties:
        scores = [round(x * 4) / 4 for x in scores]
    return {"boxes": of_target, "labels": labels, "crowd": [0] * targets, "predicted": predicted,
            "scores": [float(np.float32(x)) for x in scores], "guesses": guesses}


def by_pycocotools(images: list[dict]) -> dict:
    labels = sorted({x for each in images for x in each["labels"] + each["guesses"]})
    annotations, results = [], []
    for at, each in enumerate(images):
        for box, label, crowd in zip(each["boxes"], each["labels"], each["crowd"]):
            size = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
            annotations.append({"id": len(annotations) + 1, "image_id": at, "category_id": label, "bbox": size,
                                "area": size[2] * size[3], "iscrowd": crowd})
        for box, label, score in zip(each["predicted"], each["guesses"], each["scores"]):
            size = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
            results.append({"image_id": at, "category_id": label, "bbox": size, "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {"info": {}, "images": [{"id": i} for i in range(len(images))],
                         "categories": [{"id": x} for x in labels], "annotations": annotations}
        truth.createIndex()
        found = truth.loadRes(results) if results else COCO()
        if not results:
            found.dataset = {"images": truth.dataset["images"], "categories": truth.dataset["categories"],
                             "annotations": []}
            found.createIndex()
        run = COCOeval(truth, found, "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    precision = run.eval["precision"][:, :, :, 0, 2]  # thresholds, recalls, classes
    of_classes = [[label, float(precision[:, :, k].mean())] for k, label in enumerate(labels)
                  if (precision[:, :, k] > -1).all()]
    return {"map": float(run.stats[0]), "map_50": float(run.stats[1]), "map_75": float(run.stats[2]),
            "mar_100": float(run.stats[8]), "of_classes": of_classes}


def by_torchmetrics(images: list[dict]) -> dict:
    metric = MeanAveragePrecision(
        iou_thresholds=np.linspace(0.5, 0.95, 10).tolist(), rec_thresholds=np.linspace(0, 1, 101).tolist()
    )
    for each in images:
        def tensor(key, shape, dtype=torch.float32):
            return torch.tensor(each[key], dtype=dtype).reshape(shape)
        metric.update(
            [{"boxes": tensor("predicted", (-1, 4)), "scores": tensor("scores", (-1,)),
              "labels": tensor("guesses", (-1,), torch.int64)}],
            [{"boxes": tensor("boxes", (-1, 4)), "labels": tensor("labels", (-1,), torch.int64),
              "iscrowd": tensor("crowd", (-1,), torch.int64)}],
        )
    found = metric.compute()
    return {key: float(found[key]) for key in ["map", "map_50", "map_75", "mar_100"]}


def case(name: str, images: list[dict]) -> dict:
    found = by_pycocotools(images)
    other = by_torchmetrics(images)
    for key, value in other.items():
        assert math.isclose(found[key], value, abs_tol=2e-6), (name, key, found[key], value)
    return {"name": name} | found | {"images": images}


def main() -> None:
    deterministic()
    usual = [image(2000 + i, 3 + i % 4, 3, i % 3, 3) for i in range(9)]
    ties = [image(2100 + i, 4, 2, 3, 4, ties=True) for i in range(7)]
    # An image without targets, one without predictions, one without either.
    empty = [image(2200, 4, 2, 2, 2), image(2201, 0, 2, 3, 2), image(2202, 3, 2, 0, 2), image(2203, 0, 2, 0, 2)]
    for key in ["predicted", "scores", "guesses"]:
        empty[2][key] = []
    # Class 5 is predicted and has no target; class 7 has targets and is never predicted.
    absent = [image(2300 + i, 4, 2, 2, 2) for i in range(4)]
    absent[0]["guesses"][0] = 5
    absent[1]["labels"][1] = 7
    crowds = [image(2400 + i, 5, 2, 4, 3) for i in range(5)]
    for each in crowds:
        each["crowd"] = [1, 0, 0, 1, 0]
        each["boxes"][0] = [0.0, 0.0, 40.0, 40.0]
    only_crowd = [image(2450, 2, 1, 3, 2)]
    only_crowd[0]["crowd"] = [1, 1]
    only_crowd += [image(2451, 3, 1, 1, 2)]
    exact = [image(2500 + i, 3, 2, 0, 0) for i in range(3)]
    many = [image(2600, 6, 1, 130, 2)]
    nothing = [image(2700 + i, 3, 2, 0, 0) for i in range(2)]
    for each in nothing:
        each["predicted"], each["scores"], each["guesses"] = [], [], []
    write(
        "detection.json",
        "make_detection.py",
        {
            "pycocotools": version("pycocotools"),
            "torchmetrics": torchmetrics.__version__,
            "boxes": "left, top, right, bottom",
            "cases": [
                case("three classes", usual),
                case("scores that tie", ties),
                case("images without targets or predictions", empty),
                case("classes without targets or predictions", absent),
                case("crowds", crowds),
                case("an image of crowds alone", only_crowd),
                case("exact boxes", exact),
                case("more than 100 predictions", many),
                case("no prediction at all", nothing),
            ],
        },
    )


if __name__ == "__main__":
    main()
