#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs at MLflow's server, at Weights & Biases and in a notebook are those of the log: trackers.py PROGRAM

PROGRAM is interop_trackers, built from trackers.cpp in this folder. MLflow's own client reads what its own server has, with a
database of SQLite; a run is killed, and resumed. examples/wandb_follow.py sends the log of that run to W&B's offline
files, which are read by wandb's own messages. Jupyter's kernel runs the program in a cell. Needs requirements/trackers.txt,
whose Python runs it.
"""

import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from jupyter_client.manager import start_new_kernel
from mlflow import MlflowClient
from wandb.proto import wandb_internal_pb2

program = ""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEPS = list(range(1, 41))


def records(file: Path):
    """The messages of a .wandb file: LevelDB's log format behind seven bytes."""
    data, at, part = file.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        _, size, kind = struct.unpack_from("<IHB", data, at)
        if left < 7 or kind == 0:
            at, part = at + left, b""
            continue
        part = (part if kind in (3, 4) else b"") + data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(part)
            yield record


class Trackers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            cls.uri = f"http://127.0.0.1:{one.getsockname()[1]}"
        cls.environment = os.environ | {
            "HOME": folder.name, "MLFLOW_TRACKING_URI": cls.uri, "WANDB_MODE": "offline", "OMP_NUM_THREADS": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "NO_PROXY": "*"}  # fmt: skip
        os.environ |= cls.environment
        with open(cls.folder / "server.log", "w", encoding="utf-8") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", cls.uri.rpartition(":")[2],
                 "--workers", "1", "--backend-store-uri", f"sqlite:///{folder.name}/mlflow.db",
                 "--default-artifact-root", f"{folder.name}/artifacts"],
                stdout=log, stderr=log, start_new_session=True)  # fmt: skip
        cls.addClassCleanup(lambda: server.poll() is not None or (os.killpg(server.pid, signal.SIGKILL), server.wait()))
        until = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(cls.uri + "/health", timeout=20).close()
                break
            except OSError:
                if time.monotonic() > until or server.poll() is not None:
                    raise AssertionError((cls.folder / "server.log").read_text()) from None
                time.sleep(0.3)
        cls.client = MlflowClient(cls.uri)
        cls.said = cls.train("whole", "run", 0)
        cls.train("fails", "fails", 1)
        # A run that is killed, with a follower that reads it before and after.
        cls.train("killed", "killed", -signal.SIGKILL)
        cls.while_killed = cls.mlflow("killed")
        cls.follow("killed", "--once")
        cls.train("killed", "run", 0)
        cls.follow("killed")

    @classmethod
    def train(cls, name: str, what: str, code: int) -> str:
        done = subprocess.run([program, cls.folder / name, what], capture_output=True, text=True, timeout=120)
        if done.returncode != code:
            raise AssertionError(done.stderr)
        return done.stdout

    @classmethod
    def follow(cls, name: str, *words: str):
        subprocess.run([sys.executable, EXAMPLES / "wandb_follow.py", cls.folder / name / "metrics.jsonl", "--project", "frugal",
                        "--seconds", "0.1", *words], check=True, capture_output=True, timeout=120)  # fmt: skip

    @classmethod
    def mlflow(cls, name: str):
        experiment = cls.client.get_experiment_by_name("interop")
        found = cls.client.search_runs([experiment.experiment_id], f"attributes.run_name = '{name}'")
        assert len(found) == 1, found
        return found[0]

    def lines(self, name: str, event: str) -> list[dict]:
        text = (self.folder / name / "metrics.jsonl").read_text()
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]

    def test_mlflow_has_the_values_of_the_log(self):
        for name in "whole", "killed":
            run = self.mlflow(name)
            self.assertEqual(run.info.status, "FINISHED")
            self.assertGreaterEqual(run.info.end_time, run.info.start_time)
            for event, metrics in {"step": ("loss", "learning_rate"), "validation": ("loss", "accuracy"), "epoch": ("loss",)}.items():
                lines = self.lines(name, event)
                for metric in metrics:
                    found = self.client.get_metric_history(run.info.run_id, f"{event}/{metric}")
                    self.assertEqual([(each.step, each.value) for each in found], [(line["step"], line[metric]) for line in lines])
            self.assertEqual([line["step"] for line in self.lines(name, "step")], STEPS)

    def test_mlflow_has_the_parameters_and_numbers_that_are_none(self):
        run = self.mlflow("whole")
        self.assertEqual(run.data.params["seed"], "1")
        self.assertIn("Optimize<SGD>", run.data.params["recipe"])
        self.assertEqual(sum(name.startswith("option.o") for name in run.data.params), 120)
        self.assertEqual(len(run.data.params["option.long"]), 6000)
        self.assertIn("frugal.version", run.data.tags)
        self.assertTrue(math.isnan(run.data.metrics["step/nan"]))
        self.assertGreater(run.data.metrics["step/inf"], 1e308)  # MLflow's databases have the largest double
        self.assertEqual([value for name, value in run.data.metrics.items() if name.startswith("step/caf")], [0.5])

    def test_mlflow_knows_how_a_run_ended(self):
        self.assertEqual(self.mlflow("fails").info.status, "FAILED")
        self.assertEqual(self.while_killed.info.status, "RUNNING")
        self.assertEqual(self.while_killed.info.run_id, self.mlflow("killed").info.run_id)

    def test_wandb_has_the_values_of_the_log(self):
        rows, config, ids, exits = [], {}, set(), 0
        for file in sorted((self.folder / "killed").glob("wandb/offline-run-*/*.wandb")):
            for record in records(file):
                kind = record.WhichOneof("record_type")
                if kind == "history":
                    rows.append({each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in record.history.item})
                if kind == "run":
                    ids.add((record.run.run_id, record.run.project))
                    updates = record.run.config.update
                if kind == "config":
                    updates = record.config.update
                if kind in ("run", "config"):
                    config |= {each.key or "/".join(each.nested_key): json.loads(each.value_json) for each in updates}
                exits += kind == "exit"
        notes = json.loads((self.folder / "killed/wandb.json").read_text())
        self.assertEqual(ids, {(notes["id"], "frugal")})
        self.assertEqual(exits, 2)
        self.assertEqual(config["seed"], 1)
        for event, metric in ("step", "loss"), ("validation", "accuracy"), ("epoch", "loss"):
            found = [(row["step"], row[f"{event}/{metric}"]) for row in rows if f"{event}/{metric}" in row]
            self.assertEqual(found, [(line["step"], line[metric]) for line in self.lines("killed", event)])
        self.assertTrue(all(math.isnan(row["step/nan"]) for row in rows if "step/nan" in row))

    def test_the_result_is_one_line_of_json(self):
        self.assertEqual(self.said.count("\n"), 1)
        result = json.loads(self.said)
        last = self.lines("whole", "validation")[-1]
        self.assertEqual((result["steps"], result["exit_code"], result["resumed"], result["warnings"]), (40, 0, None, []))
        self.assertEqual(result["validation"], {"epoch": 2, "step": 40, "metrics": {
            "loss": last["loss"], "accuracy": last["accuracy"], **{name: last[name] for name in last if name[:3] in ("nan", "inf", "caf")}}})  # fmt: skip
        self.assertEqual(result["options"]["o7"], "1")

    def test_a_cell_of_a_notebook_has_whole_lines(self):
        manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60)
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.addCleanup(client.stop_channels)
        texts = []
        client.execute_interactive(f"!{program} {self.folder}/cell run", timeout=120,
                                   output_hook=lambda message: texts.append(message["content"].get("text", "")))  # fmt: skip
        text = "".join(texts).replace("\r\n", "\n")
        self.assertIn("epoch 2/2  step 40/40", text)
        self.assertEqual([each for each in text if each < " " and each != "\n"], [])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
