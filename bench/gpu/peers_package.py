# SPDX-License-Identifier: Apache-2.0
"""frugal, with the job's network as a compiled step: exports it here, once for all rounds, and runs bench_gpu with the
package. package, package+graph: FP32 (TF32); package+bf16, package+bf16+graph: exported under autocast, as the recipes of
rounds.cpp have it.

Reads the environment: FRUGAL_BENCH_GPU is the program, FRUGAL_PACKAGES the folder of the packages.
"""

import os
import pathlib
import subprocess
import sys

from common_gpu import F, Job, arguments, not_run, torch

EXPORTER = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "python" / "src"


def objective(net, batch):
    return F.cross_entropy(net(batch["data"]), batch["target"])


def export(name: str, bf16: bool, device: torch.device, folder: pathlib.Path) -> None:
    sys.path[:0] = [str(EXPORTER)]
    from frugal_step import ExportError, export_step

    job = Job(name)
    job.net.to(device)
    example = {"data": job.data[: job.batch].to(device), "target": job.target[: job.batch].to(device)}
    try:
        # One size: every batch of a job has it.
        export_step(job.net, objective, example, folder, dynamic={}, autocast=torch.bfloat16 if bf16 else None)
    except ExportError as error:
        not_run(f"the export is refused: {error}")


def main() -> int:
    args = arguments(["package", "package+graph", "package+bf16", "package+bf16+graph"], ["mlp", "convnet", "transformer", "large"])
    bf16 = "bf16" in args.how
    folder = pathlib.Path(os.environ["FRUGAL_PACKAGES"]) / f"{args.job}-{'bf16' if bf16 else 'fp32'}"
    if not folder.exists():
        export(args.job, bf16, args.device, folder)
    program = [os.environ["FRUGAL_BENCH_GPU"], "--package", str(folder), "--job", args.job, "--how", args.how]
    program += ["--steps", str(args.steps), "--warmup", str(args.warmup), "--device", args.device.type]
    # In its own process: torch has taken memory of the GPU for the export.
    return subprocess.run(program).returncode


if __name__ == "__main__":
    sys.exit(main())
