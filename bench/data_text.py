# SPDX-License-Identifier: Apache-2.0
"""WordPiece beside Python's tokenizers: the same lines of the King James Bible and of the GCIDE
dictionary, the same vocabulary, one core. The program of this file, `data_text.py FOLDER ROUNDS`, is the
rival's half; it trains the vocabulary, too."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LINES = 60_000
ROUNDS = 5


def real_lines() -> list[str]:
    """Lines that are not empty, half from each text, and from all over it."""
    try:
        bible = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True,
                               check=True).stdout.decode()  # fmt: skip
        dictionary = gzip.open("/usr/share/dictd/gcide.dict.dz").read().decode("utf-8", "replace")
    except OSError as error:
        from common import Failed

        raise Failed(f"the texts are Debian's bible-kjv, bible-kjv-text and dict-gcide ({error}).") from error
    lines = []
    for text in (bible, dictionary):
        some = [line for line in text.splitlines() if line.strip()]
        lines += some[:: max(1, len(some) // (LINES // 2))][: LINES // 2]
    return lines


def rival(folder: pathlib.Path, rounds: int) -> None:
    """Trains the vocabulary, and prints the median seconds of encoding the lines."""
    import statistics
    import time

    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    lines = (folder / "lines.txt").read_text().splitlines()
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=30_000, special_tokens=special,
                                                              show_progress=False))  # fmt: skip
    words = sorted(made.get_vocab(), key=made.get_vocab().get)
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in words))
    ids = made.get_vocab()
    made.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    for name, encode in (("encode", made.encode_batch), ("ids", made.encode_batch_fast)):
        seconds = []
        for _ in range(rounds):
            begin = time.perf_counter()
            encoded = encode(lines)
            seconds.append(time.perf_counter() - begin)
        tokens = sum(len(each.ids) for each in encoded)
        print(json.dumps({"way": name, "seconds": statistics.median(seconds), "tokens": tokens}), flush=True)


def measure(build, tools):
    from common import Failed, all_told

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lines = real_lines()
        (folder / "lines.txt").write_text("".join(line + "\n" for line in lines))
        size = (folder / "lines.txt").stat().st_size / 1e6
        os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        theirs = {each["way"]: each for each in all_told([*tools, __file__, name, str(ROUNDS)])}
        ours = {each["way"]: each for each in all_told([
            str(build / "bench" / "data_text"), str(folder / "vocab.txt"), str(folder / "lines.txt"),
            "--rounds", str(ROUNDS)])}  # fmt: skip
    for way, what in (("encode", "WordPiece, ids with offsets"), ("ids", "WordPiece, ids alone")):
        if ours[way]["tokens"] != theirs[way]["tokens"]:
            raise Failed(f"frugal gives {ours[way]['tokens']} tokens, tokenizers {theirs[way]['tokens']}.")
        mine, other = size / ours[way]["seconds"], size / theirs[way]["seconds"]
        yield {"name": what, "ours": mine, "theirs": other, "unit": "MB/s", "than": "tokenizers",
               "ratio": mine / other, "bar": 1.0}  # fmt: skip
    yield {"name": "WordPiece, ids alone, 2 threads", "ours": size / ours["ids, 2 threads"]["seconds"],
           "theirs": None, "unit": "MB/s"}  # fmt: skip


if __name__ == "__main__":
    rival(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
