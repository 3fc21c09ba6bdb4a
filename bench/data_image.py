# SPDX-License-Identifier: Apache-2.0
"""Images: JPEG files decoded beside Pillow, and images augmented beside torchvision, on one thread. The
program of this file, `data_image.py FOLDER ROUNDS`, is the rivals' half; `data_image.py make FOLDER` draws
the files."""

import json
import pathlib
import sys
import tempfile

IMAGES, ROUNDS = 48, 7


def make(folder: pathlib.Path) -> None:
    """Photograph-like JPEG files of 500 x 375 pixels: smooth colors, edges and noise."""
    import numpy
    from PIL import Image

    y, x = numpy.mgrid[0:375, 0:500]
    for i in range(IMAGES):
        random = numpy.random.default_rng(i)
        picture = numpy.zeros((375, 500, 3))
        for c in range(3):
            for _ in range(6):
                fy, fx, phase = random.uniform(-0.05, 0.05, 2).tolist() + [random.uniform(0, 6)]
                picture[:, :, c] += 30 * numpy.sin(fy * y + fx * x + phase)
        picture[(y // 40 + x // 55) % 5 == 0] += 40
        picture += 120 + random.normal(0, 6, picture.shape)
        Image.fromarray(picture.clip(0, 255).astype("uint8")).save(folder / f"{i:03}.jpg", quality=90)


def rival(folder: pathlib.Path, rounds: int) -> None:
    import io
    import statistics
    import time

    import torch
    from PIL import Image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    torch.manual_seed(1)
    files = [each.read_bytes() for each in sorted(folder.iterdir())]

    def measure(name: str, run) -> None:
        run()
        spent = []
        for _ in range(rounds):
            begin = time.perf_counter()
            run()
            spent.append(1e3 * (time.perf_counter() - begin) / len(files))
        print(json.dumps({"what": name, "ms": statistics.median(spent)}), flush=True)

    def opened(file: bytes):
        return Image.open(io.BytesIO(file))

    def drafted(file: bytes):
        image = opened(file)
        image.draft("RGB", (224, 224))
        return image

    measure("decode", lambda: [v2.functional.pil_to_tensor(opened(file).convert("RGB")) for file in files])
    small = v2.Compose([v2.PILToTensor(), v2.Resize(224, antialias=True)])
    measure("decode to 224", lambda: [small(drafted(file).convert("RGB")) for file in files])
    normalize = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    sample = v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
                         *normalize])
    measure("training pipeline", lambda: [sample(opened(file).convert("RGB")) for file in files])

    # torchvision draws once for a batch, so it is called image by image, as its collate functions do.
    square = v2.Compose([v2.PILToTensor(), v2.Resize(256, antialias=True), v2.CenterCrop(256)])
    images = [square(opened(file).convert("RGB")) for file in files]
    for name, transform in {
        "crop and flip": v2.Compose([v2.RandomCrop(224), v2.RandomHorizontalFlip()]),
        "color jitter": v2.ColorJitter(0.4, 0.4, 0.4),
        "hue": v2.ColorJitter(hue=0.1),
    }.items():
        measure(name, lambda each=transform: torch.stack([each(image) for image in images]))


def measure(build, tools) -> list[dict]:
    from common import all_told, run

    with tempfile.TemporaryDirectory() as name:
        run([*tools, __file__, "make", name])
        theirs = {line["what"]: line["ms"] for line in all_told([*tools, __file__, name, str(ROUNDS)])}
        ours = {line["what"]: line["ms"] for line in
                all_told([str(pathlib.Path(build) / "bench" / "data_image"), name, "--rounds", str(ROUNDS)])}
    return [{"name": what, "ours": ours[what], "theirs": theirs[what], "unit": "ms per image",
             "than": "Pillow" if what == "decode" else "torchvision",
             "ratio": theirs[what] / ours[what]} for what in theirs]  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    else:
        rival(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
