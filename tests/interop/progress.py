#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the bars of Progress on a terminal: progress.py PROGRAM

PROGRAM is interop_progress, built from progress.cpp in this folder. Its standard error is a
pseudo-terminal whose output goes through the terminal emulator `pyte`; one test uses tmux, which wraps
long lines again when it is resized, if tmux is installed. Needs the packages of requirements/data.txt.
"""

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import pyte

program = ""


class Terminal:
    """PROGRAM on a terminal of some size."""

    def __init__(self, rows: int, columns: int, **environment: str):
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.ours, theirs = pty.openpty()
        self._tell_size(rows, columns)
        inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs,
                                        env={**inherited, "TERM": "xterm-256color", **environment})  # fmt: skip
        os.close(theirs)

    def _tell_size(self, rows: int, columns: int):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows: int, columns: int):
        self.screen.resize(rows, columns)
        self._tell_size(rows, columns)

    def send(self, *commands: str):
        for command in commands:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == b"done\n"
            while select.select([self.ours], [], [], 0.05)[0]:
                try:
                    read = os.read(self.ours, 65536)
                except OSError:  # the program has ended
                    return
                self.raw += read
                self.stream.feed(read)

    def lines(self) -> list[str]:
        """Everything that is seen, scrolled lines included, without empty lines at the end."""
        scrolled = ["".join(row[x].data for x in range(self.screen.columns)).rstrip()
                    for row in self.screen.history.top]  # fmt: skip
        lines = scrolled + [line.rstrip() for line in self.screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        os.close(self.ours)


class Bars(unittest.TestCase):
    def terminal(self, rows: int, columns: int, **environment: str) -> Terminal:
        terminal = Terminal(rows, columns, **environment)
        self.addCleanup(terminal.close)
        return terminal

    def test_bars_are_redrawn_in_place(self):
        terminal = self.terminal(10, 100)
        terminal.send("raw before", "draw 10", "draw 50", "draw 60")
        self.assertEqual(terminal.lines(), [
            "before",
            "",
            "epoch 3/4 [#####....]  60%  3m07s left  best précision 0.9013  last 0.8953  $1.23 of $4.94  1.5 GiB",
            "steps     [#########...............]  40%  step 10/25  12.3k samples/s  loss 0.7131  data wait 3.1%",
        ])  # fmt: skip

    def test_a_validation_has_a_bar_that_goes_away(self):
        terminal = self.terminal(10, 100)
        terminal.send("draw 50", "validate 2")
        self.assertEqual(len(terminal.lines()), 4)
        self.assertEqual(terminal.lines()[3], "validation [#######.......................]  25%  batch 2/8")
        terminal.send("draw 51")
        self.assertEqual(len(terminal.lines()), 3)

    def test_bars_at_the_bottom_scroll_the_screen_once(self):
        terminal = self.terminal(4, 100)
        terminal.send(*[f"raw {i}" for i in range(6)], *[f"draw {i}" for i in range(1, 30)])
        lines = terminal.lines()
        self.assertEqual(lines[:7], ["0", "1", "2", "3", "4", "5", ""])
        self.assertEqual(len(lines), 9)
        self.assertTrue(lines[7].startswith("epoch 2/4"))

    def test_a_line_printed_in_between_stays_whole(self):
        terminal = self.terminal(20, 100)
        terminal.send("draw 1", "raw first", "draw 2", "raw second", "draw 3")
        self.assertEqual(terminal.lines()[:3], ["first", "second", ""])
        self.assertEqual(len(terminal.lines()), 5)

    def test_of_several_lines_printed_in_between_none_is_lost(self):
        terminal = self.terminal(20, 100)
        terminal.send("draw 1", *[f"raw line {i} |" for i in range(8)], "draw 2")
        lines = terminal.lines()
        for i in range(8):
            self.assertTrue(lines[i].startswith(f"line {i} |"), lines)
        self.assertEqual(len(lines), 8 + 1 + 2)

    def test_print_keeps_the_screen_clean_however_many_lines(self):
        terminal = self.terminal(6, 100)
        terminal.send("draw 1", *[f"print line {i}" for i in range(20)], "draw 2")
        lines = terminal.lines()
        self.assertEqual(lines[:21], [f"line {i}" for i in range(20)] + [""])
        self.assertEqual(len(lines), 23)

    def test_a_resize_leaves_no_rubbish(self):
        terminal = self.terminal(12, 120)
        terminal.send("raw before", "draw 10")
        for rows, columns in [(12, 60), (12, 30), (12, 100), (20, 140), (20, 12), (20, 80)]:
            with self.subTest(rows=rows, columns=columns):
                terminal.resize(rows, columns)
                terminal.send("validate 3", "draw 20")
                lines = terminal.lines()
                self.assertEqual(len(lines), 4, lines)
                self.assertEqual(lines[:2], ["before", ""])
                self.assertTrue(lines[2].startswith("epoch 1/4"), lines)
                self.assertTrue(lines[3].startswith("steps"), lines)
                self.assertTrue(all(len(line) < columns for line in lines), lines)

    def test_fewer_rows_than_bars_show_the_first_bars(self):
        for rows, shown in [(3, 2), (2, 1)]:
            terminal = self.terminal(rows, 80)
            terminal.send("draw 10", "draw 20")
            self.assertEqual(len(terminal.lines()), 1 + shown)
        terminal = self.terminal(1, 80)
        terminal.send("draw 10", "draw 20")
        self.assertEqual(len(terminal.lines()), 1)

    def test_an_exception_leaves_the_bars_and_begins_on_a_line_of_its_own(self):
        terminal = self.terminal(12, 100)
        terminal.send("draw 10", "throw")
        lines = terminal.lines()
        self.assertTrue(lines[0].startswith("epoch 1/4"))
        self.assertEqual(lines[2], "error: broken")
        self.assertEqual((terminal.screen.cursor.x, terminal.screen.cursor.y), (0, 3))
        self.assertFalse(terminal.screen.cursor.hidden)

    def test_colors_are_on_the_part_that_is_done_and_not_with_no_color(self):
        terminal = self.terminal(12, 100)
        terminal.send("draw 50")
        row = terminal.screen.buffer[1]
        green = [x for x in range(100) if row[x].fg == "green"]
        self.assertEqual([row[x].data for x in green], ["#"] * len(green))
        self.assertEqual(len(green), terminal.lines()[1].count("#"))
        without = self.terminal(12, 100, NO_COLOR="1")
        without.send("draw 50")
        self.assertNotIn(b"\x1b[32m", without.raw)
        self.assertEqual(without.lines(), terminal.lines())


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Reflow(unittest.TestCase):
    """tmux wraps lines again when a window is made narrower, as most graphical terminals do."""

    def test_bars_that_were_wrapped_leave_no_rubbish(self):
        with tempfile.TemporaryDirectory() as folder:
            commands = os.path.join(folder, "commands")
            os.mkfifo(commands)
            open(f"{folder}/answers", "w").close()
            tmux = ["tmux", "-f", "/dev/null", "-S", os.path.join(folder, "socket")]
            inner = f"exec {program} < {commands} > {folder}/answers"
            subprocess.run([*tmux, "new-session", "-d", "-x", "120", "-y", "14", inner], check=True)
            self.addCleanup(subprocess.run, [*tmux, "kill-server"], stderr=subprocess.DEVNULL)
            subprocess.run([*tmux, "set", "-g", "status", "off"], check=True)

            def seen() -> list[str]:
                done = subprocess.run([*tmux, "capture-pane", "-p", "-S", "-"], capture_output=True, text=True,
                                      check=True)  # fmt: skip
                return done.stdout.rstrip("\n").split("\n")

            answers = 0
            with open(commands, "w", buffering=1) as pipe:

                def send(command: str):
                    nonlocal answers
                    answers += 1
                    pipe.write(command + "\n")
                    for _ in range(500):
                        with open(f"{folder}/answers") as file:
                            if len(file.readlines()) >= answers:
                                break
                        time.sleep(0.02)
                    time.sleep(0.1)  # tmux reads what was written before the answer

                # A full screen: where rows below are empty tmux keeps them, and scrolls the cursor
                # out of it.
                before = [f"before {i}" for i in range(20)]
                for line in before:
                    send("raw " + line)
                send("draw 10")
                for columns in [50, 30, 100]:
                    subprocess.run([*tmux, "resize-window", "-x", str(columns), "-y", "14"], check=True)
                    time.sleep(0.2)
                    send("draw 20")
                    lines = seen()
                    self.assertEqual(lines[:21], [*before, ""], (columns, lines))
                    self.assertEqual(len(lines), 23, (columns, lines))
                    self.assertTrue(lines[21].startswith("epoch 1/4"), lines)
                    self.assertTrue(lines[22].startswith("steps"), lines)
                pipe.write("throw\n")


if __name__ == "__main__":
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
