#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what the metric sinks write with the tools of their formats: sinks.py PROGRAM

PROGRAM is interop_sinks, built from sinks.cpp in this folder. Python's tensorboard reads the event files,
MLPerf's compliance checker the log lines, Python's csv the rows. Needs the packages of
requirements/data.txt.
"""

import csv
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

from mlperf_logging.compliance_checker.mlp_compliance import ComplianceChecker
from mlperf_logging.compliance_checker.mlp_parser import parse_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

program = ""
EVERYTHING = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}


def run(folder: Path, what: str) -> list[float]:
    done = subprocess.run([program, folder, what], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [float(each) for each in done.stdout.split()]


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder / "tensorboard"), size_guidance=EVERYTHING)
    return events.Reload()


def pixels(png: bytes) -> tuple[int, int, int, list[bytes]]:
    """Width, height, color type and rows of an 8-bit PNG without interlacing, by its specification."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, header = 8, b"", (0, 0, 0, 0)
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0] == zlib.crc32(name + body)
        at += 12 + size
        if name == b"IHDR":
            header = struct.unpack(">IIBB", body[:10])
        if name == b"IDAT":
            data += body
    width, height, _, color = header
    channels = {0: 1, 2: 3, 6: 4}[color]
    raw, rows, before = zlib.decompress(data), [], bytes(width * channels)
    for y in range(height):
        kind, *line = raw[y * (width * channels + 1):(y + 1) * (width * channels + 1)]
        row = bytearray()
        for i, byte in enumerate(line):
            left = row[i - channels] if i >= channels else 0
            corner = before[i - channels] if i >= channels else 0
            up = before[i]
            paeth = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            row.append((byte + (0, left, up, (left + up) // 2, paeth)[kind]) % 256)
        before = bytes(row)
        rows.append(before)
    return width, height, color, rows


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def lines(self, event: str) -> list[dict]:
        text = (self.folder / "metrics.jsonl").read_text()
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]

    def test_scalars_are_those_of_the_log(self):
        run(self.folder, "run")
        events = read(self.folder)
        for event, names in {"step": ("loss", "lr_factor", "learning_rate", "half"), "epoch": ("loss",),
                             "validation": ("loss", "accuracy")}.items():
            lines = self.lines(event)
            self.assertGreater(len(lines), 1)
            for name in names:
                found = events.Scalars(f"{event}/{name}")
                self.assertEqual([each.step for each in found], [line["step"] for line in lines])
                single = [struct.unpack("f", struct.pack("f", line[name]))[0] for line in lines]
                self.assertEqual([each.value for each in found], single)
        self.assertGreater(events.Scalars("step/memory_bytes")[0].value, 1e6)
        self.assertGreater(events.Scalars("step/loss")[0].wall_time, 1.7e9)

    def test_histograms_have_the_values_of_the_tensors(self):
        low, high, total, count = run(self.folder, "run")
        events = read(self.folder)
        found = events.Histograms("weights/weight")
        self.assertEqual([each.step for each in found], [5, 10, 15, 20])
        last = found[-1].histogram_value
        self.assertEqual((last.min, last.max, last.num), (low, high, count))
        self.assertAlmostEqual(last.sum, total, places=6)
        self.assertEqual(sum(last.bucket), count)
        self.assertEqual([each.step for each in events.Histograms("gradients/bias")], [5, 10, 15, 20])

        known = events.Histograms("known")[0].histogram_value
        values = [-2.0, -0.5, 0.0, 0.25, 0.25, 3.0]
        self.assertEqual((known.min, known.max, known.num, known.sum), (-2, 3, 6, 1))
        self.assertEqual(known.sum_squares, sum(each * each for each in values))
        edges = [-float("inf"), *known.bucket_limit]
        wanted = [sum(a <= each < b for each in values) for a, b in zip(edges, edges[1:])]
        self.assertEqual(list(known.bucket), wanted)

    def test_texts_are_what_was_written(self):
        run(self.folder, "run")
        events = read(self.folder)
        text = events.Tensors("recipe")[0]
        self.assertEqual([each.decode() for each in text.tensor_proto.string_val], ["**SGD**, caf\u00e9"])
        self.assertEqual(text.step, 0)
        self.assertEqual(events.SummaryMetadata("recipe").plugin_data.plugin_name, "text")

    def test_images_are_png_files_with_the_pixels_of_the_tensors(self):
        run(self.folder, "run")
        events = read(self.folder)
        colors = events.Images("picture")[0]
        self.assertEqual((colors.width, colors.height), (3, 2))
        row = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255])
        self.assertEqual(pixels(colors.encoded_image_string), (3, 2, 2, [row, row]))
        grey = events.Images("grey")[0]
        self.assertEqual(pixels(grey.encoded_image_string),
                         (3, 2, 0, [bytes([0, 50, 100]), bytes([150, 200, 250])]))

    def test_a_resumed_run_has_each_step_once(self):
        run(self.folder, "stopped")
        self.assertEqual(read(self.folder).Scalars("step/loss")[-1].step, 12)
        run(self.folder, "resumed")
        events = read(self.folder)
        self.assertEqual(len(list((self.folder / "tensorboard").iterdir())), 2)
        self.assertEqual([each.step for each in events.Scalars("step/loss")], list(range(2, 21, 2)))

    def test_a_rollback_loses_no_histogram_before_the_state_it_returns_to(self):
        run(self.folder, "rolled")
        self.assertEqual([line["from_step"] for line in self.lines("rollback")], [17])
        events = read(self.folder)
        # One window is passed over; the record of step 14 is the last before the state of step 15.
        self.assertEqual([each.step for each in events.Scalars("step/loss")], list(range(2, 19, 2)))
        self.assertEqual([each.step for each in events.Histograms("weights/weight")], [5, 10, 15])

    def test_a_full_disk_leaves_whole_events_before_and_after(self):
        run(self.folder, "full")
        events = read(self.folder)
        self.assertEqual([each.step for each in events.Scalars("step/loss")], [2, 4, *range(10, 21, 2)])
        self.assertEqual([each.step for each in events.Histograms("weights/weight")], [5, 10, 15, 20])

    def test_a_second_run_from_the_beginning_replaces_the_first(self):
        for _ in range(2):
            run(self.folder, "run")
            for checkpoint in (self.folder / "checkpoints").iterdir():
                shutil.rmtree(checkpoint)
        self.assertEqual(len(list((self.folder / "tensorboard").iterdir())), 2)
        self.assertEqual([each.step for each in read(self.folder).Scalars("step/loss")], list(range(2, 21, 2)))

    def test_a_changed_byte_is_found(self):
        run(self.folder, "run")
        path = next((self.folder / "tensorboard").iterdir())
        before = len(read(self.folder).Scalars("step/loss"))
        bytes_of = bytearray(path.read_bytes())
        bytes_of[len(bytes_of) // 2] ^= 1
        path.write_bytes(bytes_of)
        self.assertLess(len(read(self.folder).Scalars("step/loss")), before)

    def test_the_log_lines_are_those_that_mlperf_asks_of_every_run(self):
        for what in ("stopped", "resumed"):
            run(self.folder, what)
        lines, errors = parse_file(self.folder / "mlperf.log", ruleset="6.0.0")
        self.assertEqual(errors, [])
        keys = [each.key for each in lines]
        for key, count in {"run_start": 1, "run_stop": 1, "epoch_start": 2, "epoch_stop": 2, "eval_accuracy": 2}.items():
            self.assertEqual(keys.count(key), count, key)
        checker = ComplianceChecker("training", "6.0.0", quiet=True, werror=True)
        config = Path(sys.modules[ComplianceChecker.__module__].__file__).parent / "training_6.0.0/common.yaml"
        # The rules for every benchmark; those of one would ask for its own model.
        checker.configured_checks(lines, config)
        self.assertFalse(checker.has_messages(), [checker.overwritable, checker.not_overwritable])

    def test_the_rows_are_the_values_of_the_log(self):
        for what in ("stopped", "resumed"):
            run(self.folder, what)
        with (self.folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
            rows = [each for each in csv.DictReader(file) if each["name"] != "memory_bytes"]
        for event in ("begin", "step", "validation", "epoch"):
            wanted = [(line["step"], name, value) for line in self.lines(event) for name, value in line.items()
                      if name not in {"event", "step", "epoch", "samples", "seconds", "memory_bytes"}]
            found = [(int(each["step"]), each["name"], float(each["value"])) for each in rows if each["event"] == event]
            self.assertEqual(found, wanted)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
