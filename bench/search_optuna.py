# SPDX-License-Identifier: Apache-2.0
"""Rival: Optuna with PyTorch. A study in a journal file, whose trials are frugal's candidates, one after the other in this process."""

import time

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from search_torch import answer, arguments, fashion_mnist, train


def main() -> None:
    args = arguments(__doc__)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    arrays = fashion_mnist(args.data)
    loops, losses = [], []

    def objective(trial: optuna.Trial) -> float:
        candidate = {
            "lr": trial.suggest_float("lr", 1e-4, 3e-2, log=True),
            "channels": trial.suggest_int("channels", 8, 16, step=4),
            "hidden": trial.suggest_int("hidden", 32, 128, log=True),
        }
        folder = args.folder / str(trial.number)
        folder.mkdir()
        loss, seconds = train(candidate, arrays, args.steps, folder)
        loops.append(seconds)
        losses.append(loss)
        return loss

    begin = time.perf_counter()
    storage = JournalStorage(JournalFileBackend(str(args.folder / "journal.log")))
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=1))
    for candidate in args.candidates:
        study.enqueue_trial(candidate)
    study.optimize(objective, n_trials=len(args.candidates))
    answer(time.perf_counter() - begin, loops, losses)


if __name__ == "__main__":
    main()
