# SPDX-License-Identifier: Apache-2.0
"""Writes metrics.json: metrics of scikit-learn and torchmetrics on whole sets, which frugal's tests
go through in ragged batches."""

import math
import warnings

import numpy as np
import sklearn
import sklearn.metrics as sk
import torch
import torchmetrics.functional.text as text
import torchmetrics.functional.classification as tm
import torchmetrics
from reference import deterministic, number, table, values, write

IGNORED = -100


def labels_of(count: int, classes: int, seed: int) -> list[int]:
    return [int((number(seed, i) + 1) / 2 * classes) for i in range(count)]


def rows(output: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """Logits a row in double precision and labels, without those that are left out."""
    logits = output.double().movedim(1, -1).reshape(-1, output.shape[1])
    flat = target.reshape(-1)
    return logits[flat != IGNORED], flat[flat != IGNORED].numpy()


def checked(ours: float, theirs: torch.Tensor) -> float:
    """Both libraries have to agree before either is a reference."""
    assert math.isclose(ours, float(theirs), abs_tol=2e-6), (ours, float(theirs))
    return float(ours)


def of_classes(output: torch.Tensor, target: torch.Tensor) -> dict:
    classes = output.shape[1]
    logits, labels = rows(output, target)
    predicted = logits.argmax(1).numpy()
    both = {"num_classes": classes, "ignore_index": IGNORED}
    found = {
        "accuracy": checked(
            sk.accuracy_score(labels, predicted),
            tm.multiclass_accuracy(output, target, average="micro", **both),
        ),
        "top2": float(sk.top_k_accuracy_score(labels, logits.numpy(), k=2, labels=range(classes))),
        "perplexity": float(
            text.perplexity(
                logits.float().unsqueeze(0), torch.tensor(labels).unsqueeze(0), ignore_index=IGNORED
            )
        ),
    }
    for average in ["micro", "macro", "weighted"]:
        with_average = {"average": average, "zero_division": 0}
        found |= {
            f"precision_{average}": checked(
                sk.precision_score(labels, predicted, **with_average),
                tm.multiclass_precision(output, target, average=average, **both),
            ),
            f"recall_{average}": checked(
                sk.recall_score(labels, predicted, **with_average),
                tm.multiclass_recall(output, target, average=average, **both),
            ),
            f"f1_{average}": checked(
                sk.f1_score(labels, predicted, **with_average),
                tm.multiclass_f1_score(output, target, average=average, **both),
            ),
        }
    if len(set(labels)) == classes:
        found["roc_auc_ovr"] = float(
            sk.roc_auc_score(labels, logits.softmax(1).numpy(), multi_class="ovr", average="macro")
        )
    matrix = sk.confusion_matrix(labels, predicted, labels=range(classes))
    found["confusion_matrix"] = matrix.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["balanced_accuracy"] = float(sk.balanced_accuracy_score(labels, predicted))
    found["cohen_kappa"] = float(sk.cohen_kappa_score(labels, predicted))
    return found


def of_two(scores: torch.Tensor, target: torch.Tensor) -> dict:
    kept = target != IGNORED
    labels, score = target[kept].numpy(), scores[kept].double().numpy()
    predicted = (score > 0).astype(int)
    auc = sk.roc_auc_score(labels, score)
    assert len(set(score.tolist())) < len(score), "the case is there for its ties"
    return {
        "accuracy": float(sk.accuracy_score(labels, predicted)),
        "precision": checked(
            sk.precision_score(labels, predicted),
            tm.binary_precision(torch.sigmoid(scores), target, ignore_index=IGNORED),
        ),
        "recall": checked(
            sk.recall_score(labels, predicted),
            tm.binary_recall(torch.sigmoid(scores), target, ignore_index=IGNORED),
        ),
        "f1": checked(
            sk.f1_score(labels, predicted),
            tm.binary_f1_score(torch.sigmoid(scores), target, ignore_index=IGNORED),
        ),
        "roc_auc": checked(
            auc, tm.binary_auroc(torch.sigmoid(scores), target, ignore_index=IGNORED)
        ),
        "confusion_matrix": sk.confusion_matrix(labels, predicted, labels=[0, 1]).tolist(),
    }


def of_values(output: torch.Tensor, target: torch.Tensor) -> dict:
    a, b = target.double().numpy(), output.double().numpy()
    return {
        "mae": float(sk.mean_absolute_error(a, b)),
        "mse": float(sk.mean_squared_error(a, b)),
        "r2": float(sk.r2_score(a, b)),
    }


def case(name: str, output: torch.Tensor, target, measure) -> dict:
    target = torch.as_tensor(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are not there
        found = measure(output, target)
    return {
        "name": name,
        "shape": list(output.shape),
        "output": values(output),
        "target_shape": list(target.shape),
        "target": target.reshape(-1).tolist() if target.dtype == torch.int64 else values(target),
    } | found


def main() -> None:
    deterministic()
    logits = table((23, 4), 1, 1)
    labels = torch.tensor(labels_of(23, 4, 11))
    ignored = labels.clone()
    ignored[::5] = IGNORED
    # Class 3 is nowhere, class 2 is predicted and no label.
    absent = table((19, 4), 1, 2)
    absent[:, 3] = -2
    tokens = table((5, 3, 4), 1, 3)
    token_labels = torch.tensor(labels_of(20, 3, 13)).view(5, 4)
    token_labels[1, 2:] = IGNORED
    token_labels[4, :] = IGNORED
    ties = (table((31,), 2, 1) * 4).round() / 4
    ties_labels = torch.tensor(labels_of(31, 2, 17))
    ties_labels[3] = ties_labels[30] = IGNORED
    far = table((17,), 3, 1) + 4096
    constant = table((11, 3), 3, 3)
    constant[:, 1] = 0.5
    write(
        "metrics.json",
        "make_metrics.py",
        {
            "scikit-learn": sklearn.__version__,
            "torchmetrics": torchmetrics.__version__,
            "ignored": IGNORED,
            "perplexity": "of torchmetrics, in float32; all else is scikit-learn's in float64, and "
            "where torchmetrics leaves labels out itself the two agree",
            "classes": [
                case("four classes", logits, labels, of_classes),
                case("labels that are left out", logits, ignored, of_classes),
                case("classes that are absent", absent, labels_of(19, 2, 12), of_classes),
                case("tokens", tokens, token_labels, of_classes),
            ],
            "two": [
                case("scores with ties, labels that are left out", ties, ties_labels, of_two),
            ],
            "values": [
                case("one value", table((17,), 3, 2), table((17,), 3, 4), of_values),
                case("far from 0", far + table((17,), 3, 5) / 8, far, of_values),
                case("three values, one constant", table((11, 3), 3, 6), constant, of_values),
            ],
        },
    )


if __name__ == "__main__":
    main()
