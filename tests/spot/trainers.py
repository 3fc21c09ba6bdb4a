# SPDX-License-Identifier: Apache-2.0
"""A stand-in trainer that does only what the files of examples/spot and examples/cluster rely on, and its control.

It prints "ready" when it handles signals. On SIGTERM or SIGUSR1 it prints which, and begins to save,
until the test lets it continue; signals that arrive meanwhile are printed too, and have no effect. It
then exits with 75. With EXIT set it exits with that at once; with DEAF set it prints "ready" and
handles no signals.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE = 30  # seconds without output after which a test fails

TRAINER = f"""#!{sys.executable}
import os, signal, sys
if "EXIT" in os.environ:
    sys.exit(int(os.environ["EXIT"]))
signal.alarm({4 * PATIENCE})  # nothing stays behind a test that fails
heard = os.open(os.environ["TALK"] + "/heard", os.O_WRONLY)
say = lambda word: os.write(heard, word.encode() + b"\\n")
told = []
def listen(number, _):
    told.append(number)
    say(signal.Signals(number).name)
if "DEAF" not in os.environ:
    signal.signal(signal.SIGUSR1, listen)
    signal.signal(signal.SIGTERM, listen)
say("ready " + " ".join(sys.argv[1:]))
while not told:
    signal.pause()
with open(os.environ["TALK"] + "/go_on") as go_on:
    go_on.read()
say("saved")
sys.exit(75)
"""


class Trainers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("heard", "go_on"):
            os.mkfifo(self.folder / name)
        # Open at both ends, so that neither side waits for the other.
        self.heard = os.open(self.folder / "heard", os.O_RDWR)
        self.addCleanup(os.close, self.heard)
        self.words = b""
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TALK": str(self.folder)}

    def program(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
        return file

    def start(self, *command, **environment):
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(self.kill, process)
        return process

    @staticmethod
    def kill(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def hear(self):
        """The next line of the trainer."""
        until = time.monotonic() + PATIENCE
        while b"\n" not in self.words:
            if not select.select([self.heard], [], [], max(0, until - time.monotonic()))[0]:
                self.fail("the trainer says nothing")
            self.words += os.read(self.heard, 4096)
        word, _, self.words = self.words.partition(b"\n")
        return word.decode().strip()

    def go_on(self):
        """Lets the save finish; fails if no trainer is saving."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                os.close(os.open(self.folder / "go_on", os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError:  # the other end is not open yet
                if time.monotonic() > until:
                    self.fail("the trainer does not save")

    def end(self, process):
        """The exit code, and everything printed."""
        printed, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, printed
