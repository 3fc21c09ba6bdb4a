# SPDX-License-Identifier: Apache-2.0
"""Rival: tuned PyTorch with fused AdamW. eager; cudagraph: the whole step captured by hand with
torch.cuda.graph; compile: forward and backward by torch.compile(mode="reduce-overhead"), with an
eager optimizer, because it is one kernel. bf16 and compile+bf16: these with BF16 autocast."""

import shutil
import time

from common_gpu import F, LEARNING_RATE, Clock, Feed, Job, answer, arguments, not_run, torch, train


def adamw(job: Job, **more) -> torch.optim.AdamW:
    return torch.optim.AdamW(job.net.parameters(), lr=LEARNING_RATE, fused=True, **more)


def eager(
    job: Job, feed: Feed, clock: Clock, device: torch.device, objective=None, compiled=False
) -> dict:
    if objective is None:

        def objective(x, y):
            return F.cross_entropy(job.net(x), y)

    optimizer = adamw(job)

    def step() -> None:
        data, target = feed.next()
        x, y = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
        feed.sent()
        if compiled and device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        objective(x, y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    train(clock, step)
    return {}


def in_bf16(job: Job, device: torch.device):
    def objective(x, y):
        with torch.autocast(device.type, torch.bfloat16):
            return F.cross_entropy(job.net(x), y)

    return objective


def eager_bf16(job: Job, feed: Feed, clock: Clock, device: torch.device) -> dict:
    return eager(job, feed, clock, device, in_bf16(job, device), compiled=False)


def compiled_bf16(job: Job, feed: Feed, clock: Clock, device: torch.device) -> dict:
    return compiled(job, feed, clock, device, in_bf16(job, device))


def compiled(job: Job, feed: Feed, clock: Clock, device: torch.device, objective=None) -> dict:
    if device.type == "cuda":
        try:
            import triton  # noqa: F401
        except ImportError:
            not_run("torch.compile needs triton, which is not installed")
    if not any(shutil.which(name) for name in ("gcc", "cc", "clang", "g++", "c++")):
        not_run("torch.compile needs a C compiler, and there is none")

    if objective is None:

        def objective(x, y):
            return F.cross_entropy(job.net(x), y)

    begin = time.perf_counter()
    objective = torch.compile(objective, mode="reduce-overhead", dynamic=False)
    eager(job, feed, clock, device, objective, compiled=True)
    seconds = time.perf_counter() - begin
    from torch._dynamo.utils import counters

    skips = counters["inductor"]["cudagraph_skips"]  # compiled but not captured
    advice = [f"cudagraph_skips: {skips}"] if skips else []
    return {"seconds_in_all": seconds, "advice": advice}


def cudagraph(job: Job, feed: Feed, clock: Clock, device: torch.device) -> dict:
    if device.type != "cuda":
        not_run("a CUDA graph needs a GPU")
    data, target = feed.slots[0]
    x, y = torch.empty_like(data, device=device), torch.empty_like(target, device=device)
    optimizer = adamw(job, capturable=True)
    total = torch.zeros((), device=device)

    def body() -> None:
        loss = F.cross_entropy(job.net(x), y)
        loss.backward()
        optimizer.step()
        total.add_(loss.detach())

    def advance() -> None:
        for here, there in zip((x, y), feed.next()):
            here.copy_(there, non_blocking=True)
        feed.sent()

    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # in addition to the clock's own warm-up
            advance()
            optimizer.zero_grad(set_to_none=True)
            body()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph, stream=side):
        body()

    def step() -> None:
        advance()
        graph.replay()

    train(clock, step)
    return {"captures": 1, "mean_loss": total.item() / (clock.all_steps() + 3)}


def main() -> None:
    ways = {"eager": eager, "cudagraph": cudagraph, "compile": compiled}
    ways |= {"bf16": eager_bf16, "compile+bf16": compiled_bf16}
    args = arguments(list(ways), ["mlp", "convnet", "transformer", "large"])
    job = Job(args.job)
    job.net.to(args.device).train()
    clock = Clock(args)
    more = ways[args.how](job, Feed(job, args.device), clock, args.device)
    answer(args, "torch", args.how, job, clock, **more)


if __name__ == "__main__":
    main()
