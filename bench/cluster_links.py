# SPDX-License-Identifier: Apache-2.0
"""Steps of Replicate<Ring> over links of a known rate, compared with what plan_ranks predicts.

Each rank is in a network namespace of its own on one bridge, and a token bucket limits what it sends (iproute2, as root).
The step of a rank that trains alone, while as many others do the same, is the computation; measure_link, the bytes of the
gradients and plan_ranks (frugal/report/plan/rank_plan.hpp) give the rest. Bars are for the rate of measure_link over that of the
token bucket, and for the measured step over the predicted one. The table also has it over max(computation, communication), which no overlap can beat: only a backward pass hides
communication, so a forward pass and a last bucket come on top.
"""

import json
import signal
import statistics
import subprocess
import sys

from cluster_ranks import ended, start
from common import Failed, judge, machine, version_of

RATES = (100, 400)  # Mbit/s
RANKS = (2, 4)  # that train
LINKS = (2, 4, 8)  # that measure the link
PAYLOAD = 1448 / 1514  # tcp_payload_share of frugal/base/gradient_exchange.hpp
WAYS = {"ring": [], "wire": ["--bf16"]}  # and the flag of --way plan
STEPS, WARMUP = 4, 2
BAR = 1.10
NAME, NETWORK, PORT = "frugal-bench", "10.219.77", 29719


def command(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"`{' '.join(words)}` failed: {done.stderr.strip()}. It needs root, and iproute2's ip and tc.")


class Network:
    """Namespaces of a bridge, which are removed when the block ends."""

    def __init__(self, ranks: int):
        self.ranks = ranks

    def __enter__(self) -> "Network":
        self.__exit__()  # what a bench that was killed has left
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            command("ip", "link", "add", NAME, "type", "bridge")
            command("ip", "link", "set", NAME, "up")
            for rank in range(self.ranks):
                inside = f"{NAME}-{rank}"
                command("ip", "netns", "add", inside)
                command("ip", "link", "add", f"frugal-v{rank}", "type", "veth", "peer", "name", "eth0", "netns", inside)
                command("ip", "link", "set", f"frugal-v{rank}", "master", NAME, "up")
                command("ip", "-n", inside, "addr", "add", f"{NETWORK}.{rank + 1}/24", "dev", "eth0")
                command("ip", "-n", inside, "link", "set", "eth0", "up")
                command("ip", "-n", inside, "link", "set", "lo", "up")
        except Failed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for rank in range(max(LINKS)):
            # Not left to the namespace, which lives as long as a rank that is still ending.
            subprocess.run(["ip", "link", "del", f"frugal-v{rank}"], capture_output=True)
            subprocess.run(["ip", "netns", "del", f"{NAME}-{rank}"], capture_output=True)
        subprocess.run(["ip", "link", "del", NAME], capture_output=True)

    def limit(self, mbit: int) -> None:
        """What each namespace sends. A bucket of 2 ms, so that a step does not pass in one burst."""
        burst = max(32_000, mbit * 1_000_000 // 8 // 500)
        for rank in range(self.ranks):
            command("tc", "-n", f"{NAME}-{rank}", "qdisc", "replace", "dev", "eth0", "root", "tbf",
                    "rate", f"{mbit}mbit", "burst", str(burst), "latency", "400ms")  # fmt: skip

    def run(self, words: list[str]) -> dict:
        """What rank 0 prints."""
        outputs = ended([
            start(["ip", "netns", "exec", f"{NAME}-{rank}", *words], rank, self.ranks, PORT, f"{NETWORK}.1")
            for rank in range(self.ranks)
        ])  # fmt: skip
        return json.loads(outputs[0].splitlines()[-1])


def step_of(line: dict) -> float:
    return statistics.median(line["seconds"])


def computation(program: str, ranks: int, training: list[str]) -> float:
    """Seconds of a step without communication, of the slowest of so many processes that train alone at once."""
    words = [program, "--way", "ring", *training]
    lines = ended([start(words, 0, 1, PORT + rank) for rank in range(ranks)])
    return max(step_of(json.loads(each.splitlines()[-1])) for each in lines)


def measure(args) -> list[dict]:
    program, found = str(args.frugal), []
    training = ["--job", "gpt", "--steps", str(args.steps or STEPS), "--warmup", str(WARMUP)]
    for ranks in LINKS:
        with Network(ranks) as network:
            for mbit in RATES:
                network.limit(mbit)
                link = network.run([program, "--way", "link"])
                found.append({"ranks": ranks, "mbit": mbit, "way": "link", **link})
                print(f"{ranks} ranks, {mbit} Mbit/s: measured {link['rate'] * 8e-6:.1f} Mbit/s of payload, "
                      f"{link['latency'] * 1e6:.0f} us", flush=True)  # fmt: skip
                for way, flags in WAYS.items() if ranks in RANKS else ():
                    before = computation(program, ranks, training)
                    step = step_of(network.run([program, "--way", way, *training]))
                    # The machine may be busier at one time than at another.
                    compute = statistics.mean([before, computation(program, ranks, training)])
                    plan = json.loads(subprocess.run(
                        [program, "--way", "plan", "--job", "gpt", "--ranks", str(ranks), "--compute", str(compute),
                         "--latency", str(link["latency"]), "--rate", str(link["rate"]), *flags],
                        capture_output=True, text=True, check=True).stdout)  # fmt: skip
                    found.append({"ranks": ranks, "mbit": mbit, "way": way, "step": step, "compute": compute,
                                  "communication": plan["communication"], "predicted": plan["step"]})  # fmt: skip
                    print(f"{ranks} ranks, {mbit} Mbit/s, {way}: {step:.3f} s a step, predicted {plan['step']:.3f} s",
                          flush=True)  # fmt: skip
    return found


def main(args) -> int:
    try:
        found = measure(args)
    except Failed as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    print(f"\n{machine()}, LibTorch {version_of(args.torch)}; GPT of 11 million parameters, 4 sequences of 128 a rank")
    print(f"{'ranks':>5}{'Mbit/s':>8}  {'way':6}{'compute s':>11}{'sums s':>9}{'step s':>9}{'predicted s':>13}{'over max':>10}")
    steps = [each for each in found if each["way"] != "link"]
    for each in steps:
        bound = max(each["compute"], each["communication"])
        print(f"{each['ranks']:5}{each['mbit']:8}  {each['way']:6}{each['compute']:11.3f}{each['communication']:9.3f}"
              f"{each['step']:9.3f}{each['predicted']:13.3f}{each['step'] / bound:10.3f}")  # fmt: skip
    print()
    met = True
    for each in found:
        if each["way"] == "link":
            text = f"{each['ranks']} ranks, {each['mbit']} Mbit/s: the rate of measure_link over the payload's"
            share = each["rate"] * 8e-6 / (each["mbit"] * PAYLOAD)
            met = judge(text, share, 1 / BAR, "least") and judge(text, share, BAR) and met
    for each in steps:
        text = f"{each['ranks']} ranks, {each['mbit']} Mbit/s, {each['way']}: the step over the predicted one"
        met = judge(text, each["step"] / each["predicted"], BAR) and met
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0 if met or not args.strict else 1
