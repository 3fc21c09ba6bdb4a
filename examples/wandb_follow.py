#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends the JSON Lines of a run to Weights & Biases while it trains: wandb_follow.py LOG [--project NAME] [--once]

LOG is what the policy Log writes, such as runs/demo/metrics.jsonl. Training does not know of this program: start it
before, meanwhile or afterwards, and again if it was stopped. It ends with the run, or with --once at the end of
the file. The folder of the log gets wandb.json, which has the id of the run at W&B and what was sent. Settings come from
wandb's own variables, such as WANDB_PROJECT, WANDB_MODE=offline and WANDB_API_KEY. Needs the package wandb.
"""

import argparse
import json
import os
import time
import uuid
from pathlib import Path

import wandb

PLACE = {"event", "step", "epoch", "samples", "seconds"}
ROWS = {"step", "validation", "epoch"}


class Follower:
    def __init__(self, log: Path, project: str | None):
        self.log, self.notes = log, log.with_name("wandb.json")
        # The log is read up to `bytes`, where `tail` is its last line; `sent` has the last step of each kind of row.
        self.state = {"id": uuid.uuid4().hex[:12], "bytes": 0, "tail": "", "sent": {}, "returns": 0}
        if self.notes.exists():
            self.state = json.loads(self.notes.read_text(encoding="utf-8"))
        self.save()
        # Steps may go back (a Rollback), which W&B's own counter of rows does not.
        self.run = wandb.init(project=project, id=self.state["id"], name=log.resolve().parent.name, resume="allow",
                              dir=log.resolve().parent)  # fmt: skip
        self.run.define_metric("*", step_metric="step")

    def save(self):
        partial = self.notes.with_name("wandb.json.partial")
        partial.write_text(json.dumps(self.state), encoding="utf-8")
        os.replace(partial, self.notes)

    def read(self) -> bool:
        """Sends the whole lines that are new; true at the end of the run."""
        if not self.log.exists():
            return False
        with self.log.open("rb") as file:
            tail = self.state["tail"].encode()
            file.seek(max(0, self.state["bytes"] - len(tail)))
            # A resumed run cuts the log and writes the stretch again: then all is read, and what is sent is skipped.
            if file.read(len(tail)) != tail:
                self.state["bytes"] = 0
                file.seek(0)
            text = file.read()
        text = text[:text.rfind(b"\n") + 1]
        ended = False
        for line in text.splitlines(keepends=True):
            ended = self.send(json.loads(line))
            self.state["tail"] = line.decode()
        if text:
            self.state["bytes"] += len(text)
            self.save()
        return ended

    def send(self, line: dict) -> bool:
        event, step, sent = line["event"], line["step"], self.state["sent"]
        # null is a number that JSON does not have.
        values = {name: float("nan") if value is None else value for name, value in line.items() if name not in PLACE}
        if event == "begin":
            self.run.config.update(values, allow_val_change=True)
        elif event in ROWS:
            if step > sent.get(event, -1):
                place = {"step": step, "epoch": line["epoch"], "samples": line["samples"]}
                self.run.log(place | {f"{event}/{name}": value for name, value in values.items()})
                sent[event] = step
        elif event == "end":
            self.run.summary["stopped_by"] = line["stopped_by"]
        else:
            if event == "rollback" and line["returns"] > self.state["returns"]:
                # The run trains other values from here on.
                self.state["returns"] = line["returns"]
                self.state["sent"] = {kind: min(last, step) for kind, last in sent.items()}
            print(json.dumps(line), flush=True)  # wandb keeps what is printed
        return event == "end"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--project")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--seconds", type=float, default=2, help="between two looks at the log")
    arguments = parser.parse_args()
    follower = Follower(arguments.log, arguments.project)
    try:
        while not follower.read() and not arguments.once:
            time.sleep(arguments.seconds)
    except KeyboardInterrupt:
        pass
    follower.run.finish()


if __name__ == "__main__":
    main()
