# SPDX-License-Identifier: Apache-2.0
"""Writes curate.json: similarities of texts by Python's sets, what datasketch estimates them as, and
perceptual hashes of pictures by NumPy and SciPy.

Needs requirements/data-bench.txt (datasketch, NumPy, SciPy), and no PyTorch.
"""

import json
import re
from pathlib import Path

import numpy
from datasketch import MinHash
from scipy.fft import dct

TEXTS = [
    "Larboard, n. The left-hand side of a ship to one on board facing toward the bow; port.",
    "Larboard, n. The left-hand  side of a ship, to one on board facing toward the bow; PORT.",
    "Larboard, n. The left-hand side of a vessel to one on board facing toward the bow; port.",
    "In the beginning God created the heaven and the earth. And the earth was without form, and void.",
    "In the beginning God created the heaven and the earth.\nAnd the earth was without form and void!",
    "Die Übermütigen verhöhnten die Ärmsten; die Größe des Ganzen blieb, wie sie gewesen war: groß.",
    "Die Übermütigen verhöhnten die Ärmsten; die Größe des Ganzen blieb, wie sie gewesen ist: groß.",
    "one two three",
    "one  two\tthree",
    "one",
    "",
    " .,;- ",
    "a rose is a rose is a rose is a rose is a rose",
    "a rose is a rose is a rose",
    "日本語の文字は三つのバイトで書かれる。",
    "日本語の文字は四つのバイトで書かれる。",
]

HASHES = 260


def words(text: str, fold: bool) -> list[str]:
    if fold:
        # Everything beyond ASCII is a letter, and only ASCII has cases.
        return re.findall(r"[a-z0-9\u0080-\U0010ffff]+", lower(text))
    return re.findall(r"[^ \t\n\v\f\r]+", text)


def lower(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def shingles(text: str, of: str, length: int, fold: bool) -> set[str]:
    if of == "words":
        parts, join = words(text, fold), " "
    else:
        parts, join = list(re.sub(r"[ \t\n\v\f\r]+", " ", lower(text)).strip(" ") if fold else text), ""
    length = min(length, len(parts))
    return {join.join(parts[i : i + length]) for i in range(len(parts) - length + 1)} if parts else set()


def jaccard(a: set, b: set) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def estimate(a: set, b: set) -> float:
    signatures = []
    for each in (a, b):
        signature = MinHash(num_perm=HASHES)
        signature.update_batch([shingle.encode() for shingle in each])
        signatures.append(signature)
    return signatures[0].jaccard(signatures[1])


def similarities() -> list[dict]:
    cases = []
    for of, length, fold in [("words", 5, True), ("words", 2, True), ("words", 2, False), ("words", 1, True),
                             ("characters", 5, True), ("characters", 3, False)]:
        sets = [shingles(text, of, length, fold) for text in TEXTS]
        cases.append({
            "of": of, "length": length, "fold": fold, "sizes": [len(each) for each in sets],
            "jaccard": [[jaccard(a, b) for b in sets[:i]] for i, a in enumerate(sets)],
            "datasketch": [[estimate(a, b) for b in sets[:i]] for i, a in enumerate(sets)],
        })  # fmt: skip
    return cases


def picture(height: int, width: int, seed: int) -> numpy.ndarray:
    """Waves of several lengths, and a little noise: bytes that differ enough at every scale."""
    random = numpy.random.RandomState(seed)
    y, x = numpy.mgrid[0:height, 0:width] / 40.0
    image = numpy.zeros((height, width))
    for _ in range(12):
        fy, fx, phase = random.uniform(-6, 6), random.uniform(-6, 6), random.uniform(0, 7)
        image += random.uniform(0.3, 1) * numpy.sin(fy * y + fx * x + phase)
    image += random.normal(0, 0.05, image.shape)
    low, high = image.min(), image.max()
    return ((image - low) / (high - low) * 255).round().astype(numpy.uint8)


def shares(size: int, cells: int) -> numpy.ndarray:
    """[cells, size]: how much of each pixel lies in each cell; area averaging."""
    edges = numpy.arange(cells + 1) * size / cells
    pixel = numpy.arange(size)
    over = numpy.minimum(edges[1:, None], pixel + 1) - numpy.maximum(edges[:-1, None], pixel)
    return numpy.clip(over, 0, None) * cells / size


def shrunk(image: numpy.ndarray, height: int, width: int) -> numpy.ndarray:
    return shares(image.shape[0], height) @ image.astype(float) @ shares(image.shape[1], width).T


def bits(values: numpy.ndarray) -> str:
    return f"{int(''.join('1' if each else '0' for each in values.flatten()), 2):016x}"


def dhash(image: numpy.ndarray) -> str:
    small = shrunk(image, 8, 9)
    return bits(small[:, 1:] > small[:, :-1])


def phash(image: numpy.ndarray) -> str:
    small = shrunk(image, 32, 32)
    low = dct(dct(small, axis=0), axis=1)[:8, :8]
    return bits(low > numpy.median(low))


def pictures() -> list[dict]:
    out = []
    for seed, (height, width) in enumerate([(8, 9), (32, 32), (40, 50), (33, 100), (70, 31), (64, 48)]):
        image = picture(height, width, seed)
        out.append({"height": height, "width": width, "pixels": image.flatten().tolist(),
                    "dhash": dhash(image), "phash": phash(image)})  # fmt: skip
    return out


def main() -> None:
    content = {
        "made_by": "tests/reference/make_curate.py",
        "similarities": similarities(), "pictures": pictures(), "texts": TEXTS, "hashes": HASHES,
    }  # fmt: skip
    lines = [f'"{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in content.items()]
    Path(__file__).with_name("curate.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
