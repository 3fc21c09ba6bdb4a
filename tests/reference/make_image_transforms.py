#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image_transforms.json: torchvision's transforms with given parameters."""

import random

import torch
import torchvision
from reference import deterministic, table, values, write
from torchvision.transforms.v2 import CutMix, MixUp
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2 import InterpolationMode as I

deterministic()
random.seed(0)
CASES: list[dict] = []


def images(shape, seed: int, dtype: str) -> torch.Tensor:
    """Bytes of the number formula: floor(128 * (number + 1)); as floats over 255."""
    bytes_ = ((table(shape, 77, seed) + 1) * 128).floor().to(torch.uint8)
    return bytes_ if dtype == "uint8" else bytes_.to(torch.float32) / 255


def add(op: str, dtype: str, shape, seed: int, result: torch.Tensor, **arguments) -> None:
    CASES.append({"op": op, "dtype": dtype, "input": list(shape), "seed": seed, "arguments": arguments,
                  "shape": list(result.shape),
                  "values": values(result) if result.is_floating_point() else result.reshape(-1).tolist()})


for dtype in ("uint8", "float32"):
    shape = (2, 3, 11, 14)
    for mode in ("bilinear", "bicubic", "nearest"):
        for height, width in ((5, 6), (22, 17), (11, 7)):
            x = images(shape, 1, dtype)
            interpolation = {"bilinear": I.BILINEAR, "bicubic": I.BICUBIC, "nearest": I.NEAREST}[mode]
            for antialias in (True, False) if mode != "nearest" else (True,):
                if not antialias and dtype == "uint8":
                    continue  # torchvision's own paths differ by one there
                add("resize", dtype, shape, 1, F.resize(x, [height, width], interpolation, antialias=antialias),
                    height=height, width=width, mode=mode, antialias=antialias)
    for size, shape_of in ((7, (1, 3, 11, 14)), (7, (1, 3, 14, 11)), (15, (1, 1, 12, 12)), (6, (1, 3, 7, 40))):
        add("resize_shorter", dtype, shape_of, 2, F.resize(images(shape_of, 2, dtype), [size]), size=size)
    for height, width in ((5, 6), (6, 5), (11, 14), (16, 9), (13, 21), (8, 8)):
        add("center_crop", dtype, shape, 3, F.center_crop(images(shape, 3, dtype), [height, width]),
            height=height, width=width)
    for top, left, height, width in ((1, 2, 6, 7), (0, 0, 11, 14), (5, 9, 3, 5)):
        add("resized_crop", dtype, shape, 4,
            F.resized_crop(images(shape, 4, dtype), top, left, height, width, [8, 9], antialias=True),
            top=top, left=left, height=height, width=width)
    add("horizontal_flip", dtype, shape, 5, F.horizontal_flip(images(shape, 5, dtype)))
    add("vertical_flip", dtype, shape, 5, F.vertical_flip(images(shape, 5, dtype)))
    for channels in (3, 1):
        colors = (1, channels, 6, 7)
        for factor in (0.0, 0.3, 1.0, 1.7):
            x = images(colors, 6, dtype)
            add("adjust_brightness", dtype, colors, 6, F.adjust_brightness(x, factor), factor=factor)
            add("adjust_contrast", dtype, colors, 6, F.adjust_contrast(x, factor), factor=factor)
            add("adjust_saturation", dtype, colors, 6, F.adjust_saturation(x, factor), factor=factor)
        for factor in (-0.5, -0.2, 0.0, 0.1, 0.45):
            add("adjust_hue", dtype, colors, 6, F.adjust_hue(images(colors, 6, dtype), factor), factor=factor)
    # torchvision normalizes floats; bytes are scaled before.
    x = F.to_dtype(images(shape, 7, dtype), torch.float32, scale=True)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    add("normalize", dtype, shape, 7, F.normalize(x, mean, std), mean=mean, std=std)

shape, labels = (4, 3, 8, 10), torch.tensor([2, 0, 1, 2])
for factor in (0.0, 0.35, 1.0):
    x = images(shape, 8, "float32")
    mixed = MixUp(num_classes=3)
    add("mixup", "float32", shape, 8, mixed.transform(x, {"lam": factor, "labels": labels, "batch_size": 4}),
        weight=factor)
    add("mixup_targets", "float32", shape, 8, mixed._mixup_label(labels, lam=factor), weight=factor)
for left, top, right, bottom in ((2, 1, 7, 5), (0, 0, 10, 8), (3, 3, 3, 6)):
    kept = 1 - (right - left) * (bottom - top) / 80
    given = {"box": (left, top, right, bottom), "lam_adjusted": kept, "labels": labels, "batch_size": 4}
    for dtype in ("uint8", "float32"):
        add("cutmix", dtype, shape, 9, CutMix(num_classes=3).transform(images(shape, 9, dtype), given),
            top=top, left=left, height=bottom - top, width=right - left)
    add("mixup_targets", "float32", shape, 9, CutMix(num_classes=3)._mixup_label(labels, lam=kept), weight=kept)

write("image_transforms.json", "make_image_transforms.py", {
    "torchvision": torchvision.__version__.split("+")[0],
    "fields": "input, seed: the shape of bytes floor(128 * (number(77, seed, i) + 1)), as floats over 255; "
              "shape, values: what torchvision.transforms.v2 makes of them with these arguments. mixup and "
              "cutmix mix each image with the one before it; labels are 2, 0, 1, 2 of 3 classes",
    "cases": CASES,
})
