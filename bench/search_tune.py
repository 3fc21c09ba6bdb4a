# SPDX-License-Identifier: Apache-2.0
"""Rival: Ray Tune with PyTorch. One trial at a time in an actor that is reused, with the images in Ray's object store.

`wall` is that of Tuner.fit() with Ray running already; `start` is the seconds that Ray takes to start.
"""

import os
import pathlib
import time

import ray
from ray import tune
from ray.tune.search import BasicVariantGenerator

from search_torch import answer, arguments, fashion_mnist, train


def trainable(candidate: dict, arrays, steps: int) -> None:
    loss, seconds = train(candidate, arrays, steps, pathlib.Path.cwd())
    tune.report({"loss": loss, "seconds": seconds})


def main() -> None:
    args = arguments(__doc__)
    arrays = fashion_mnist(args.data)
    os.environ |= {"RAY_AIR_NEW_OUTPUT": "0", "RAY_USAGE_STATS_ENABLED": "0", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1"}
    begin = time.perf_counter()
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR", object_store_memory=2**30,
             _temp_dir=str(args.folder / "ray"))  # fmt: skip
    started = time.perf_counter()
    tuner = tune.Tuner(
        tune.with_resources(tune.with_parameters(trainable, arrays=arrays, steps=args.steps), {"cpu": 1}),
        param_space={
            "lr": tune.loguniform(1e-4, 3e-2),
            "channels": tune.qrandint(8, 16, 4),
            "hidden": tune.lograndint(32, 129),
        },
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=len(args.candidates),
            search_alg=BasicVariantGenerator(points_to_evaluate=args.candidates, max_concurrent=1, random_state=1),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(storage_path=str(args.folder), verbose=0),
    )
    results = tuner.fit()
    ended = time.perf_counter()
    if results.errors:
        raise results.errors[0]
    answer(ended - started, [each.metrics["seconds"] for each in results], [each.metrics["loss"] for each in results],
           start=started - begin)  # fmt: skip
    ray.shutdown()


if __name__ == "__main__":
    main()
