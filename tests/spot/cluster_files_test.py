#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets SkyPilot and Kubernetes' schemas read the files of examples/cluster, and runs the script of SkyPilot's job.

Needs the packages of requirements/spot.txt, and neither the network nor an account.
"""

import copy
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from trainers import Trainers  # noqa: E402

# SkyPilot writes to its user's home when it is imported.
home = tempfile.TemporaryDirectory()
os.environ.update(HOME=home.name, SKYPILOT_DISABLE_USAGE_COLLECTION="1")

import kubernetes_validate  # noqa: E402
import sky  # noqa: E402
import yaml  # noqa: E402
from sky.backends import task_codegen  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/cluster"
PLACE = """#!/bin/sh
echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT" "$@"
exit "${EXIT:-0}"
"""


class Sky(Trainers):
    def test_the_file_is_a_job_on_four_spot_machines_that_75_starts_again(self):
        task = sky.Task.from_yaml(str(EXAMPLES / "skypilot.yaml"))
        (resources,) = task.resources
        self.assertEqual(task.num_nodes, 4)
        self.assertTrue(resources.use_spot)
        self.assertEqual(resources.job_recovery["recover_on_exit_codes"], [75, 1])
        self.assertEqual(list(task.volumes), ["/runs"])

    def test_each_machine_starts_its_processes_and_has_their_code(self):
        self.program("build/spot/examples/distributed", PLACE)
        (self.folder / "examples").symlink_to(EXAMPLES.parent)
        run = sky.Task.from_yaml(str(EXAMPLES / "skypilot.yaml")).run
        script = self.program("job.sh", task_codegen.TaskCodeGen.build_task_bash_script(run))
        for code in (0, 75, 1):
            place = {"SKYPILOT_NUM_NODES": "4", "SKYPILOT_NODE_RANK": "2", "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2\n10.0.0.3"}
            found = self.end(self.start("/bin/bash", script, EXIT=str(code), **place))
            self.assertEqual(found[0], code)
            self.assertIn("2 of 4 at 10.0.0.1:29500 --run /runs/demo\n", found[1])


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.objects = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8")))
        self.job = self.objects[2]

    def test_strict_schemas_take_it(self):
        self.assertEqual([each["kind"] for each in self.objects], ["Service", "PersistentVolumeClaim", "Job"])
        for version in ("1.31", "1.37"):
            for each in self.objects:
                kubernetes_validate.validate(copy.deepcopy(each), version, strict=True)

    def test_they_refuse_what_is_misspelt_or_of_a_wrong_type(self):
        for change in (
            lambda spec: spec.update(completionmode="Indexed"),
            lambda spec: spec.update(completions="four"),
            lambda spec: spec["podFailurePolicy"]["rules"][0]["onExitCodes"].update(values=["75"]),
            lambda spec: spec["template"]["spec"]["containers"][0].update(args="--run"),
        ):
            wrong = copy.deepcopy(self.job)
            change(wrong["spec"])
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(wrong, "1.37", strict=True)

    def test_its_parts_fit_together(self):
        service, claim, job = self.objects
        spec, pod = job["spec"], job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        command = container["command"]
        self.assertEqual((spec["completionMode"], pod["restartPolicy"]), ("Indexed", "Never"))  # as the policy demands
        self.assertEqual(spec["completions"], spec["parallelism"])  # all pods at once
        self.assertEqual(command[command.index("--nodes") + 1], str(spec["completions"]))
        # The first pod's name is that of the job and its index, in the domain of the headless service.
        first = f"{job['metadata']['name']}-0.{pod['subdomain']}:29500"
        self.assertEqual(command[command.index("--master") + 1], first)
        self.assertEqual((service["metadata"]["name"], service["spec"]["clusterIP"]), (pod["subdomain"], "None"))
        self.assertEqual(service["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"])
        rule = spec["podFailurePolicy"]["rules"][0]
        self.assertEqual((rule["action"], rule["onExitCodes"]["values"]), ("Ignore", [75]))
        self.assertEqual(rule["onExitCodes"]["containerName"], container["name"])


if __name__ == "__main__":
    unittest.main()
