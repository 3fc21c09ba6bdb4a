#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""annotated.json: regions of COCO files as pycocotools draws them, and annotations as torchvision moves them."""

import contextlib
import io
from importlib.metadata import version

import numpy as np
import torch
import torchvision
from PIL import Image
from pycocotools import mask as regions
from pycocotools.coco import COCO
from reference import deterministic, number, values, write
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2 import InterpolationMode as I

deterministic()

IGNORED = -100
CATEGORIES = [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}, {"id": 1, "name": "bird"}]
LABELS = {1: 0, 3: 1, 7: 2}  # in the order of the ids


def between(low: float, high: float, *words: int) -> float:
    return low + (number(*words) + 1) / 2 * (high - low)


def polygon(seed: int, count: int, h: int, w: int, out: float, digits: int) -> list[float]:
    """Vertices anywhere, so that most polygons cross themselves; `out`: how far they leave the image."""
    return [round(between(-out * side, (1 + out) * side, seed, 2 * i + k), digits)
            for i in range(count) for k, side in enumerate((w, h))]


def blob(seed: int, h: int, w: int) -> np.ndarray:
    """Runs of many lengths, so that texts have one character and several for each."""
    runs, at, out = [], 0, np.zeros(h * w, np.uint8)
    while at < h * w:
        length = int(between(0, 3, seed, len(runs)) ** 6) + 1
        out[at : at + length] = len(runs) % 2
        runs.append(length)
        at += length
    return np.asfortranarray(out.reshape((h, w), order="F"))


def coco(objects: list[dict], h: int, w: int) -> dict:
    annotations = [{"id": 10 + i, "image_id": 5, "bbox": [0, 0, 1, 1], "iscrowd": 0} | each for i, each in enumerate(objects)]
    return {"images": [{"id": 5, "file_name": "a.png", "height": h, "width": w}], "categories": CATEGORIES,
            "annotations": annotations}


def mask_case(name: str, objects: list[dict], h: int, w: int) -> dict:
    file = coco(objects, h, w)
    with contextlib.redirect_stdout(io.StringIO()):
        read = COCO()
        read.dataset = file
        read.createIndex()
        mask = np.zeros((h, w), np.int64)
        for each in file["annotations"]:
            mine = LABELS[each["category_id"]] + 1
            for y, x in np.argwhere(read.annToMask(each)):
                mask[y, x] = mine if mask[y, x] in (0, mine) else IGNORED
    return {"name": name, "file": file, "mask": mask.reshape(-1).tolist()}


def masks() -> list[dict]:
    found = []
    for i, (h, w, count, out, digits) in enumerate([
        (9, 7, 3, 0, 2), (16, 20, 5, 0, 1), (16, 20, 8, 0.3, 2), (13, 11, 4, 0.9, 0), (12, 12, 12, 0.1, 3),
        (1, 9, 4, 0.2, 1), (9, 1, 4, 0.2, 1), (1, 1, 3, 0.9, 2), (20, 16, 30, 0, 2)]):
        parts = [polygon(100 * i + k, count, h, w, out, digits) for k in range(1 + i % 3)]
        found.append(mask_case(f"{count} vertices in {h} x {w}", [{"category_id": 3, "segmentation": parts}], h, w))
    # Edges on the middles of pixels and on their borders, and a vertex twice.
    for name, xy in (("a rectangle on borders", [2, 1, 7, 1, 7, 5, 2, 5]),
                     ("a rectangle on middles", [2.5, 1.5, 7.5, 1.5, 7.5, 5.5, 2.5, 5.5]),
                     ("a line", [2, 1, 7, 5, 2, 1]), ("a point", [3, 3, 3, 3, 3, 3]),
                     ("the whole image", [0, 0, 10, 0, 10, 8, 0, 8])):
        found.append(mask_case(name, [{"category_id": 1, "segmentation": [xy]}], 8, 10))
    for i in range(3):
        region = regions.encode(blob(900 + i, 17, 23))
        counts = region["counts"].decode()
        found.append(mask_case(f"compressed counts {i}", [
            {"category_id": 7, "iscrowd": 1, "segmentation": {"size": [17, 23], "counts": counts}}], 17, 23))
    lengths = [3, 5, 0, 4, 20, 1, 7, 40]
    found.append(mask_case("lengths of runs", [
        {"category_id": 7, "segmentation": {"size": [8, 10], "counts": lengths}}], 8, 10))
    found.append(mask_case("objects that overlap", [
        {"category_id": 3, "segmentation": [[1, 1, 8, 1, 8, 6, 1, 6]]},
        {"category_id": 3, "segmentation": [[4, 3, 10, 3, 10, 8, 4, 8]]},
        {"category_id": 1, "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]]},
        {"category_id": 7, "iscrowd": 1, "segmentation": {"size": [8, 10], "counts": lengths}}], 8, 10))
    return found


H, W = 20, 28


def sample() -> tuple:
    mask = torch.tensor([[int(between(0, 5, 1, y, x)) if between(0, 1, 2, y, x) < 0.95 else IGNORED for x in range(W)]
                         for y in range(H)])
    boxes, points = [], []
    for i in range(6):
        left, top = between(0, W - 4, 3, i), between(0, H - 4, 4, i)
        boxes.append([left, top, between(left + 1, W, 5, i), between(top + 1, H, 6, i)])
        points.append([[between(0, W - 1, 7, i, k), between(0, H - 1, 8, i, k), float(int(between(0, 3, 9, i, k)))]
                       for k in range(3)])
    points = torch.tensor(points)
    points[points[..., 2] == 0] = 0
    return mask, torch.tensor(boxes), points


def transform_case(name: str, move, **arguments) -> dict:
    """`move`: a function of any of torchvision's tv_tensors."""
    mask, boxes, points = sample()
    moved_mask = move(tv_tensors.Mask(mask))
    h, w = moved_mask.shape
    moved = move(tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(H, W), clamping_mode="hard"))
    moved = F.clamp_bounding_boxes(moved)
    area = (moved[:, 2] - moved[:, 0]) * (moved[:, 3] - moved[:, 1])
    before = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    grown = arguments.get("scale", 1.0)
    keep = ((area > 0) & (area >= before * grown * arguments.get("visible", 0.0))).nonzero().squeeze(1)
    xy = move(tv_tensors.KeyPoints(points[..., :2], canvas_size=(H, W)))
    hidden = (points[..., 2] == 0) | (xy[..., 0] < 0) | (xy[..., 1] < 0) | (xy[..., 0] >= w) | (xy[..., 1] >= h)
    together = torch.cat([xy.as_subclass(torch.Tensor), points[..., 2:]], 2)
    together[hidden] = 0
    return {"name": name, "arguments": arguments, "size": [h, w], "mask": moved_mask.reshape(-1).tolist(),
            "kept": keep.tolist(), "boxes": values(moved.as_subclass(torch.Tensor)[keep]),
            "keypoints": values(together[keep])}


def padded(x, border: int):
    return F.pad(x, [border] * 4, fill=IGNORED if isinstance(x, tv_tensors.Mask) else 0)


def transforms() -> tuple:
    mask, boxes, points = sample()
    found = [transform_case("horizontal_flip", F.horizontal_flip), transform_case("vertical_flip", F.vertical_flip)]
    for h, w in ((10, 14), (31, 17), (20, 28), (40, 56)):
        found.append(transform_case("resize", lambda x, h=h, w=w: F.resize(x, [h, w], I.BILINEAR), height=h, width=w))
    for top, left, h, w, visible in ((0, 0, 20, 28, 0), (3, 5, 9, 11, 0), (3, 5, 9, 11, 0.5), (12, 0, 8, 8, 0), (0, 20, 5, 8, 0.2)):
        found.append(transform_case("crop", lambda x: F.crop(x, top, left, h, w), top=top, left=left, height=h, width=w,
                                    visible=visible))
    border = 6
    for top, left, h, w in ((-6, -6, 16, 16), (9, 15, 17, 19)):
        found.append(transform_case("crop", lambda x: F.crop(padded(x, border), top + border, left + border, h, w),
                                    top=top, left=left, height=h, width=w))
    for h, w in ((11, 15), (20, 9), (8, 8)):
        found.append(transform_case("center_crop", lambda x: F.center_crop(x, [h, w]), height=h, width=w))
    return found, {"mask": mask.reshape(-1).tolist(), "boxes": values(boxes), "keypoints": values(points)}


def label_file(name: str, image: Image.Image, **options) -> dict:
    """The numbers that numpy gets of a mask: of a palette the index."""
    file = io.BytesIO()
    image.save(file, "png", **options)
    read = np.asarray(Image.open(file)).astype(int)
    return {"name": name, "file": file.getvalue().hex(), "shape": list(read.shape), "values": read.reshape(-1).tolist()}


def label_files() -> list[dict]:
    def numbers(most: int, dtype) -> np.ndarray:
        return np.array([[int(between(0, most, 11, most, y, x)) for x in range(13)] for y in range(7)], dtype)

    def with_palette(most: int) -> Image.Image:
        image = Image.fromarray(numbers(most, np.uint8))
        image = Image.frombytes("P", image.size, image.tobytes())
        image.putpalette([int(between(0, 256, 12, i)) for i in range(3 * most)])
        return image

    return [label_file("palette of 8 bits", with_palette(200)), label_file("palette of 4 bits", with_palette(14), bits=4),
            label_file("palette of 1 bit", with_palette(2), bits=1),
            label_file("palette with alpha", with_palette(20), transparency=3),
            label_file("grey of 8 bits", Image.fromarray(numbers(256, np.uint8))),
            label_file("grey of 1 bit", Image.fromarray(numbers(2, np.uint8) * 255).convert("1")),
            label_file("grey of 16 bits", Image.fromarray(numbers(40000, np.uint16)))]


cases, given = transforms()
write("annotated.json", "make_annotated.py", {
    "pycocotools": version("pycocotools"),
    "pillow": version("pillow"),
    "torchvision": torchvision.__version__.split("+")[0],
    "masks_are": "file: a COCO file of one image; mask: H * W numbers, 0 or the label + 1 of pycocotools' annToMask, -100 "
                 "where two labels overlap",
    "masks": masks(),
    "given": {"size": [H, W]} | given,
    "transforms_are": "what torchvision makes of the mask, the boxes and the keypoints of `given`. kept: boxes of which "
                      "some area is left, and at least the share `visible`. Keypoints [kept, 3, 3]: x, y, visibility; 0 "
                      "where they are outside. Masks have -100 beyond the image",
    "transforms": cases,
    "label_files_are": "PNG files of labels in hexadecimal, and what Pillow and numpy read",
    "label_files": label_files(),
})
