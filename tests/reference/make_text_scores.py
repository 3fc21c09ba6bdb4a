# SPDX-License-Identifier: Apache-2.0
"""Writes text_scores.json: seqeval's entity-level scores, sacrebleu's BLEU and rouge-score's ROUGE."""

import warnings
from importlib.metadata import version

import sacrebleu
from reference import deterministic, number, write
from rouge_score import rouge_scorer
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

IGNORED = -100
IOB2 = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
IOBES = ["O", "B-PER", "I-PER", "E-PER", "S-PER", "B-LOC", "I-LOC", "E-LOC", "S-LOC"]


def pick(count: int, *words: int) -> int:
    return min(int((number(*words) + 1) / 2 * count), count - 1)


def sequences(rows: int, length: int, tags: list[str], seed: int, alike: float) -> tuple[list, list]:
    """Labels, of which half are "O", and predictions that are often the same; every kind of broken sequence is there."""
    labels, predicted = [], []
    for b in range(rows):
        row = [0 if number(seed, b, t, 1) > 0 else pick(len(tags), seed, b, t, 2) for t in range(length)]
        for t in range(1, length):  # spans of several tokens
            if number(seed, b, t, 3) > -0.2 and row[t - 1] and tags[row[t - 1]][0] in "BI":
                row[t] = tags.index("I" + tags[row[t - 1]][1:])
        guess = [x if number(seed, b, t, 4) < alike else pick(len(tags), seed, b, t, 5) for t, x in enumerate(row)]
        labels.append(row)
        predicted.append(guess)
    return labels, predicted


def spans(name: str, tags: list[str], labels: list, predicted: list, ignored=()) -> dict:
    marked = [[IGNORED if (b, t) in ignored else x for t, x in enumerate(row)] for b, row in enumerate(labels)]
    kept = [[(x, y) for x, y in zip(row, guess) if x != IGNORED] for row, guess in zip(marked, predicted)]
    true = [[tags[x] for x, _ in row] for row in kept]
    found = [[tags[y] for _, y in row] for row in kept]
    types = list(dict.fromkeys(tag[2:] for tag in tags if tag != "O"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = precision_recall_fscore_support(true, found, average=None, zero_division=0)
        scores = {"span_precision": precision_score(true, found), "span_recall": recall_score(true, found),
                  "span_f1": f1_score(true, found)}
    # Of the types that are there, which seqeval sorts by name.
    there = sorted({x[2:] for row in true + found for x in row if x != "O"})
    of_types = [[float(each[k][there.index(kind)]) if kind in there else 0.0 for k in range(3)] for kind in types]
    return {"name": name, "tags": tags, "labels": marked, "predicted": predicted} | {
        key: float(value) for key, value in scores.items()} | {"of_types": of_types}


WORDS = "the a cat dog sat on mat ran fast red blue".split()


def text(length: int, *words: int) -> list[str]:
    return [WORDS[pick(len(WORDS), *words, i)] for i in range(length)]


def near(tokens: list[str], *words: int) -> list[str]:
    changed = [x if number(*words, i) < 0.6 else WORDS[pick(len(WORDS), *words, i, 1)] for i, x in enumerate(tokens)]
    return changed[: len(changed) - (number(*words, 99) > 0)]


def texts(name: str, hypotheses: list[list[str]], references: list[list[list[str]]]) -> dict:
    class Tokens:
        def tokenize(self, joined):
            return joined.split()

    lines = [" ".join(x) for x in hypotheses]
    most = max(map(len, references))
    # Text without a reference of that number: None, as sacrebleu has it.
    streams = [[" ".join(x[k]) if k < len(x) else None for x in references] for k in range(most)]
    bleu = sacrebleu.corpus_bleu(lines, streams, tokenize="none", smooth_method="exp", force=True)
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False, tokenizer=Tokens())
    each = [scorer.score_multi([" ".join(y) for y in x], line) for line, x in zip(lines, references)]
    found = {key: sum(x[key].fmeasure for x in each) / len(each) for key in ["rouge1", "rouge2", "rougeL"]}
    return {"name": name, "hypotheses": hypotheses, "references": references, "bleu": float(bleu.score)} | found


def main() -> None:
    deterministic()
    labels, predicted = sequences(9, 11, IOB2, 31, 0.5)
    broken, broken_too = sequences(12, 9, IOB2, 32, -0.2)
    ignored = {(b, t) for b in range(9) for t in range(11) if number(33, b, t) > 0.3} | {(4, t) for t in range(11)}
    iobes, iobes_too = sequences(14, 10, IOBES, 34, 0.3)
    none = [[0] * 5] * 3
    one_type = [[1, 2, 0, 0, 1], [0, 0, 1, 2, 2], [0, 1, 0, 1, 2]]
    references = [text(6 + i % 7, 41, i) for i in range(12)]
    others = [text(5 + i % 5, 42, i) for i in range(12)]
    hypotheses = [near(x, 43, i) for i, x in enumerate(references)]
    single = [[x] for x in references]
    write(
        "text_scores.json",
        "make_text_scores.py",
        {
            "seqeval": version("seqeval"),
            "sacrebleu": sacrebleu.__version__,
            "rouge-score": version("rouge-score"),
            "spans": [
                spans("spans", IOB2, labels, predicted),
                spans("broken spans", IOB2, broken, broken_too),
                spans("ignored tokens", IOB2, labels, predicted, ignored),
                spans("IOBES", IOBES, iobes, iobes_too),
                spans("nothing is predicted", IOB2, labels, [[0] * 11] * 9),
                spans("nothing is labelled", IOB2, none, [[1, 2, 0, 3, 4]] * 3),
                spans("neither", IOB2, none, none),
                spans("a type that is nowhere", IOB2, one_type, [[1, 2, 0, 0, 2], [0, 1, 1, 2, 2], [0, 0, 0, 1, 2]]),
                spans("one token", IOB2, [[1], [2], [0], [3]], [[1], [1], [0], [4]]),
            ],
            "texts": [
                texts("one reference", hypotheses, single),
                texts("two references", hypotheses, [[a, b] for a, b in zip(references, others)]),
                texts("some have two references", hypotheses,
                      [[a, b] if i % 2 else [a] for i, (a, b) in enumerate(zip(references, others))]),
                texts("the same", references, single),
                texts("nothing matches", [["x", "y", "z", "v", "w"]], [[["a", "b", "c", "d", "e"]]]),
                texts("no match of high orders", [["the", "cat", "x", "y", "on", "z"]],
                      [[["the", "cat", "sat", "on", "a", "mat"]]]),
                texts("texts of one token", [["cat"], ["dog"]], [[["cat"]], [["cat"]]]),
                texts("three tokens at most", [["the", "cat", "sat"]], [[["the", "cat", "sat"]]]),
                texts("an empty hypothesis", [[], ["the", "cat", "sat", "on", "mat"]],
                      [[["the", "cat"]], [["the", "cat", "sat", "on", "a", "mat"]]]),
                texts("nothing but an empty hypothesis", [[]], [[["the", "cat"]]]),
                texts("repeated tokens", [["the"] * 7], [[["the", "cat", "is", "on", "the", "mat"]]]),
                texts("references that are as close", [["a", "cat", "sat", "on", "mat"]],
                      [[["a", "cat", "sat", "on", "the", "red", "mat"], ["the", "cat", "sat"]]]),
            ],
        },
    )


if __name__ == "__main__":
    main()
