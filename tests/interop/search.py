#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Optuna reads the journal of a search, its dashboard shows it, and kills change nothing: search.py PROGRAM [KILLS]

Needs requirements/search.txt, whose Python runs it. By itself it kills 12 workers; docs/reliability.md has the results of
more. The seed is printed, and FRUGAL_KILLS_SEED sets it.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

program = ""
kills = 12


def start(folder: Path, kind: str, milliseconds: int) -> subprocess.Popen:
    return subprocess.Popen([program, str(folder), kind, str(milliseconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip


def study_of(folder: Path) -> optuna.Study:
    storage = JournalStorage(JournalFileBackend(str(folder / "journal.log")))
    return optuna.load_study(study_name="frugal", storage=storage)


class Search(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def search(self, name: str, kind: str) -> dict:
        worker = start(self.folder / name, kind, 0)
        said, errors = worker.communicate(timeout=120)
        self.assertEqual(worker.returncode, 0, errors)
        return json.loads(said)

    def test_optuna_loads_the_journal(self):
        for kind in "halving", "hyperband", "asha":
            found = self.search(kind, kind)
            study = study_of(self.folder / kind)
            self.assertEqual(study.direction, optuna.study.StudyDirection.MINIMIZE)
            self.assertEqual([trial.state.value for trial in study.trials], [each[0] for each in found["trials"]])
            for trial, values in zip(study.trials, found["trials"]):
                self.assertEqual(list(trial.intermediate_values.values()), values[1:])
                self.assertIn(trial.params["activation"], ("relu", "gelu"))
                self.assertTrue(1e-4 <= trial.params["lr"] <= 1e-1)
                self.assertEqual("max_norm" in trial.params, "ClipNorm" in trial.params["recipe"])
                if trial.state == optuna.trial.TrialState.COMPLETE:
                    self.assertEqual(trial.value, values[-1])
                    self.assertIsNotNone(trial.datetime_complete)
            complete = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
            self.assertEqual(study.best_value, min(trial.value for trial in complete))
            self.assertTrue(any(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials))

    def test_optuna_loads_a_front(self):
        self.search("front", "front")
        study = study_of(self.folder / "front")
        directions = optuna.study.StudyDirection
        self.assertEqual(study.directions, [directions.MAXIMIZE, directions.MINIMIZE])
        self.assertEqual(study.user_attrs["objectives"], ["accuracy", "bytes"])
        best = study.best_trials
        self.assertTrue(best)
        self.assertTrue(all(0 <= trial.values[0] <= 1 and trial.values[1] > 100 for trial in best))

    def test_its_dashboard_shows_the_search(self):
        found = self.search("halving", "halving")
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        dashboard = subprocess.Popen(
            [sys.executable, "-c", "from optuna_dashboard._cli import main; main()", "--quiet", "--server", "wsgiref", "--storage-class",
             "JournalFileStorage", "--port", str(port), str(self.folder / "halving/journal.log")],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
        self.addCleanup(dashboard.kill)

        def get(path: str):
            until = time.monotonic() + 60
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/{path}", timeout=20) as answer:
                        return json.load(answer)
                except OSError:
                    if time.monotonic() > until or dashboard.poll() is not None:
                        raise
                    time.sleep(0.3)

        studies = get("studies")["study_summaries"]
        self.assertEqual([study["study_name"] for study in studies], ["frugal"])
        detail = get(f"studies/{studies[0]['study_id']}?after=0")
        self.assertEqual(len(detail["trials"]), len(found["trials"]))
        self.assertEqual({param["name"] for param in detail["trials"][0]["params"]} - {"max_norm"},
                         {"recipe", "lr", "width", "activation"})  # fmt: skip

    def test_killed_workers_find_the_same(self):
        seed = int(os.environ.get("FRUGAL_KILLS_SEED", random.randrange(10**9)))
        print(f"seed {seed}", file=sys.stderr)
        draw = random.Random(seed)
        for kind in "halving", "hyperband":
            calm = self.search(f"calm-{kind}", kind)
            killed = searches = 0
            while killed < kills // 2:
                searches += 1
                killed += self.kill(draw, kind, self.folder / f"{kind}-{searches}", calm)
            print(f"{kind}: {killed} kills in {searches} searches", file=sys.stderr)

    def kill(self, draw: random.Random, kind: str, folder: Path, calm: dict) -> int:
        """Kills workers of one search until it has ended; the number of kills."""
        workers = [start(folder, kind, 25) for _ in range(2)]
        self.addCleanup(lambda: [each.kill() for each in workers])
        killed = 0
        while True:
            time.sleep(draw.uniform(0.3, 1.6))
            which = draw.randrange(len(workers))
            if workers[which].poll() is not None:
                break
            workers[which].send_signal(draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            said, errors = workers[which].communicate(timeout=60)
            self.assertIn(workers[which].returncode, (-signal.SIGKILL, -signal.SIGTERM, 75, 0), errors)
            killed += workers[which].returncode != 0
            workers[which] = start(folder, kind, 25)
        for worker in workers:
            said, errors = worker.communicate(timeout=120)
            self.assertEqual(worker.returncode, 0, errors)
            self.assertEqual(json.loads(said), calm)
        return killed


if __name__ == "__main__":
    program = sys.argv.pop(1)
    if len(sys.argv) > 1:
        kills = int(sys.argv.pop(1))
    unittest.main()
