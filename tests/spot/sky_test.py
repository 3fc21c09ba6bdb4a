#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets SkyPilot parse examples/spot/skypilot.yaml, and runs the script that it makes from it.

Needs the packages of requirements/spot.txt, and neither the network nor an account.
"""

import os
import socket
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
from trainers import TRAINER, Trainers  # noqa: E402

# SkyPilot writes to its user's home when it is imported.
home = tempfile.TemporaryDirectory()
os.environ.update(HOME=home.name, SKYPILOT_DISABLE_USAGE_COLLECTION="1")

import psutil  # noqa: E402
import sky  # noqa: E402
from sky.backends import task_codegen  # noqa: E402
from sky.skylet import log_lib  # noqa: E402
from sky.utils import schemas  # noqa: E402

FILE = Path(__file__).resolve().parents[2] / "examples/spot/skypilot.yaml"


def no_network(*_):
    raise AssertionError("reading a job file asks for the network")


class Sky(Trainers):
    def setUp(self):
        super().setUp()
        self.text = FILE.read_text(encoding="utf-8")
        # A client accepts unknown keys of job_recovery; its server refuses them.
        strict = mock.patch.object(schemas, "_allow_additional_properties", return_value=False)
        closed = mock.patch.multiple(socket.socket, connect=no_network, connect_ex=no_network)
        for patch in (strict, closed):
            patch.start()
            self.addCleanup(patch.stop)

    def refusal(self, old, new):
        """SkyPilot's error about the file with one change."""
        self.assertEqual(self.text.count(old), 1, old)
        with self.assertRaises((ValueError, sky.exceptions.InvalidSkyPilotConfigError)) as caught:
            sky.Task.from_yaml_str(self.text.replace(old, new))
        return str(caught.exception)

    def test_the_file_is_a_job_on_spot_machines_that_75_starts_again(self):
        task = sky.Task.from_yaml(str(FILE))
        (resources,) = task.resources
        self.assertTrue(resources.use_spot)
        self.assertEqual(resources.job_recovery["recover_on_exit_codes"], [75])
        self.assertEqual(resources.job_recovery["max_restarts_on_errors"], 0)

    def test_runs_are_kept_in_a_bucket_that_can_be_appended_to(self):
        task = sky.Task.from_yaml(str(FILE))
        (bucket,) = task.storage_mounts.items()
        self.assertEqual((bucket[0], bucket[1].mode), ("/runs", sky.StorageMode.MOUNT_CACHED))
        self.assertIn(f"--run {bucket[0]}/", task.run)

    def test_unknown_keys_are_refused(self):
        self.assertIn("recover_on_exit_code", self.refusal("recover_on_exit_codes:", "recover_on_exit_code:"))
        self.assertIn("use_spots", self.refusal("use_spot:", "use_spots:"))
        self.assertIn("runs", self.refusal("\nrun:", "\nruns:"))

    def test_values_of_a_wrong_type_are_refused(self):
        self.assertIn("'75' is not of type 'integer'", self.refusal("[75]", '["75"]'))
        self.assertIn("375 is greater", self.refusal("[75]", "[375]"))
        self.assertIn("'MOUNTED' is not one of", self.refusal("mode: MOUNT_CACHED", "mode: MOUNTED"))
        self.assertIn("s4", self.refusal("store: s3", "store: s4"))

    def job(self, **environment):
        """Starts the job's script as SkyPilot does on its machine."""
        self.program("sky_workdir/build/spot/examples/production", TRAINER)
        # SkyPilot appends a check for pending uploads.
        self.program("bin/findmnt", '#!/bin/sh\ntouch "$TALK/uploaded"\n')
        self.environment["PATH"] = f"{self.folder}/bin:{self.environment['PATH']}"
        script = task_codegen.TaskCodeGen.build_task_bash_script(sky.Task.from_yaml(str(FILE)).run)
        script = self.program("job.sh", log_lib.make_task_bash_script(script))
        return self.start("/bin/bash", "-i", script, **environment)

    def test_the_job_waits_for_uploads_and_has_the_exit_code_of_the_trainer(self):
        for code in (0, 1, 75, 137):
            self.assertEqual(self.end(self.job(EXIT=str(code)))[0], code)
            (self.folder / "uploaded").unlink()

    def test_a_signal_to_all_lets_the_trainer_save(self):
        job = self.job()
        self.assertEqual(self.hear(), "ready --run /runs/demo")
        shell = psutil.Process(job.pid)
        for _ in range(2):
            # Like sky.skylet.subprocess_daemon.
            for process in [shell, *shell.children(recursive=True)]:
                process.terminate()
            self.assertEqual(self.hear(), "SIGTERM")
        self.go_on()
        self.assertEqual(self.hear(), "saved")
        self.assertEqual(self.end(job)[0], 75)
        self.assertTrue((self.folder / "uploaded").exists())


if __name__ == "__main__":
    unittest.main()
