#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev install`, and how ./dev uses apt, in a checkout with a LibTorch of empty libraries and with
apt commands that only record their arguments. Nothing is compiled except CMake's own checks; the stage
`package` of ./dev test --all builds and runs a real consumer."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("dev", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "include", "requirements")
VERSION_H = "\n".join(f"#define TORCH_VERSION_{part} {n}" for part, n in
                      (("MAJOR", 2), ("MINOR", 11), ("PATCH", 0)))
CONSUMER = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(frugal 0.1 CONFIG REQUIRED)
get_target_property(found frugal::torch INTERFACE_LINK_DIRECTORIES)
message(STATUS "linked from ${found}")
"""


def fake_torch(folder: Path) -> Path:
    """A LibTorch with the files that CMake checks, laid out like a wheel."""
    torch = folder / "torch"
    for name, text in (("include/ATen/ATen.h", ""), ("include/torch/version.h", VERSION_H),
                       ("include/torch/csrc/api/include/torch/torch.h", "")):
        (torch / name).parent.mkdir(parents=True, exist_ok=True)
        (torch / name).write_text(text)
    (torch / "lib").mkdir()
    for name in ("libtorch_cpu", "libc10", "libtorch_cuda", "libc10_cuda", "libtorch_python"):
        (torch / "lib" / f"{name}.so").write_text(name)
    (torch / "lib/libgomp.so.1").write_text("gomp")
    nvidia = folder / "nvidia/cu13/lib"
    nvidia.mkdir(parents=True)
    for name in ("libcudart.so.13", "libcupti.so.13", "libcublas.so.13"):
        (nvidia / name).write_text(name)
    licences = folder / "torch-2.11.0.dist-info/licenses"
    licences.mkdir(parents=True)
    (licences / "LICENSE").write_text("BSD")
    return torch


class Checkout(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="frugal-install-"))
        self.addCleanup(shutil.rmtree, self.scratch)
        self.root, self.prefix = self.scratch / "checkout", self.scratch / "prefix"
        self.commands, self.asked = self.scratch / "commands", self.scratch / "asked"
        self.root.mkdir()
        self.commands.mkdir()
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, self.root / part)

    def command(self, name: str, text: str) -> None:
        file = self.commands / name
        file.write_text("#!/bin/sh\n" + text)
        file.chmod(0o755)

    def run_dev(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        path = f"{self.commands}:{os.environ['PATH']}"
        known = {k: v for k, v in os.environ.items() if not k.startswith("FRUGAL_")}
        return subprocess.run([self.root / "dev", *arguments], capture_output=True, text=True,
                              env={**known, "PATH": path, **environment}, timeout=300)


class Install(Checkout):
    def setUp(self) -> None:
        super().setUp()
        wheels = self.root / ".frugal/torch-2.11.0"
        self.torch = fake_torch(wheels)
        requirements = (self.root / "requirements/torch-2.11.0.txt").read_bytes()
        (wheels / ".stamp").write_text(hashlib.sha256(requirements).hexdigest() + "  -\n")
        self.command("dpkg-query", f'echo "$4" >>{self.asked}\nprintf installed\n')

    def install(self, *flags: str, **environment: str) -> str:
        environment.setdefault("FRUGAL_TORCH_VERSION", "2.11.0")
        done = self.run_dev("install", *flags, str(self.prefix), **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def consumer(self, prefix: Path) -> subprocess.CompletedProcess:
        """Configures a project that finds the installed frugal, without python3's torch."""
        project = self.scratch / "project"
        project.mkdir(exist_ok=True)
        (project / "CMakeLists.txt").write_text(CONSUMER)
        shutil.rmtree(self.scratch / "build", ignore_errors=True)
        return subprocess.run(["cmake", "-S", project, "-B", self.scratch / "build", "-G", "Ninja",
                               f"-DCMAKE_PREFIX_PATH={prefix}", "-DFRUGAL_PYTHON=/nonexistent"],
                              capture_output=True, text=True, timeout=300)

    def test_what_dev_brought_is_copied_and_the_checkout_may_go(self) -> None:
        said = self.install()
        self.assertIn(f"copy of LibTorch, in {self.prefix}/lib/frugal", said)
        shutil.rmtree(self.root)
        done = self.consumer(self.prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"linked from {self.prefix}/lib/frugal/torch/lib", done.stdout)

    def test_the_copy_moves_with_its_prefix(self) -> None:
        self.install()
        shutil.rmtree(self.root)
        moved = self.prefix.rename(self.scratch / "moved")
        done = self.consumer(moved)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"linked from {moved}/lib/frugal/torch/lib", done.stdout)

    def test_the_copy_is_what_a_program_on_the_cpu_needs(self) -> None:
        self.install()
        copy = self.prefix / "lib/frugal"
        found = sorted(str(each.relative_to(copy)) for each in copy.rglob("*.so*"))
        self.assertEqual(found, ["nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13",
                                 "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
                                 "torch/lib/libtorch_cpu.so"])
        self.assertTrue((copy / "torch/include/ATen/ATen.h").is_file())
        self.assertEqual((self.prefix / "share/licenses/libtorch/LICENSE").read_text(), "BSD")

    def test_link_refers_to_the_checkout_and_says_what_clean_would_break(self) -> None:
        said = self.install("--link")
        self.assertIn(f"It refers to the LibTorch in {self.torch}, which ./dev clean removes.", said)
        self.assertFalse((self.prefix / "lib/frugal").exists())
        self.assertIn(f"linked from {self.torch}/lib", self.consumer(self.prefix).stdout)
        shutil.rmtree(self.root)
        done = self.consumer(self.prefix)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("frugal: there is no LibTorch", done.stderr.replace("\n", " "))

    def test_a_libtorch_that_the_user_names_is_not_copied(self) -> None:
        mine = fake_torch(self.scratch / "mine")
        said = self.install(FRUGAL_LIBTORCH=str(mine))
        self.assertIn(f"It refers to the LibTorch in {mine}.", said)
        self.assertFalse((self.prefix / "lib/frugal").exists())
        self.assertIn(f"linked from {mine}/lib", self.consumer(self.prefix).stdout)

    def test_a_second_install_with_link_leaves_no_copy_that_is_used(self) -> None:
        self.install()
        self.install("--link")
        self.assertIn(f"linked from {self.torch}/lib", self.consumer(self.prefix).stdout)

    def test_only_packages_of_a_users_program_are_asked_for(self) -> None:
        self.install()
        asked = set(self.asked.read_text().split())
        self.assertEqual(asked, {"g++", "cmake", "ninja-build", "rapidjson-dev", "libxxhash-dev", "zlib1g-dev"})

    def test_a_prefix_that_cannot_be_written_to_is_said_so(self) -> None:
        (self.scratch / "file").write_text("")
        done = self.run_dev("install", str(self.scratch / "file/prefix"), FRUGAL_TORCH_VERSION="2.11.0")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"could not install into {self.scratch}/file/prefix. Name a folder", done.stderr)

    def test_an_install_without_a_folder_says_what_to_write(self) -> None:
        for arguments in ((), ("--link",), ("--copy",), ("a", "b")):
            done = self.run_dev("install", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("install needs one folder: ./dev install /usr/local", done.stderr)


class Apt(Checkout):
    """A machine without Debian's clang-format-19, which is all that `./dev format` needs."""

    LOCKED = ("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (unattended-upgr)\n"
              "E: Unable to lock directory /var/lib/apt/lists/")

    def setUp(self) -> None:
        super().setUp()
        self.command("dpkg-query", "exit 1\n")
        self.command("id", "echo 0\n")
        self.command("sleep", f'echo "sleep $*" >>{self.asked}\n')
        self.command("clang-format-19", "exit 0\n")

    def apt(self, fails: str, times: int, message: str) -> subprocess.CompletedProcess:
        """./dev format, with apt-get's command `fails` failing that many times, with the message."""
        count, text = self.scratch / "count", self.scratch / "message"
        count.write_text("")
        text.write_text(message + "\n")
        self.command("apt-get", f"""\
echo "apt-get $*" >>{self.asked}
case " $* " in *" {fails} "*)
  echo x >>{count}
  if [ "$(wc -l <{count})" -le {times} ]; then cat {text}; exit 100; fi
esac
""")
        return self.run_dev("format")

    def asks(self) -> list[str]:
        return self.asked.read_text().splitlines()

    def test_apt_waits_for_dpkgs_lock_by_itself(self) -> None:
        self.assertEqual(self.apt("none", 0, "").returncode, 0)
        commands = [ask for ask in self.asks() if ask.startswith("apt-get")]
        self.assertEqual(len(commands), 2)
        for command in commands:
            self.assertIn("-o DPkg::Lock::Timeout=", command)
        self.assertIn("install -y --no-install-recommends clang-format-19", commands[1])

    def test_a_lock_that_apt_does_not_wait_for_is_waited_for_and_named_once(self) -> None:
        for command in ("update", "install"):
            with self.subTest(command=command):
                self.asked.unlink(missing_ok=True)
                done = self.apt(command, 3, self.LOCKED)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("waiting for process 4711 (unattended-upgr), which holds apt's lock"), 1)
                self.assertEqual(sum(ask.startswith("sleep") for ask in self.asks()), 3)

    def test_a_lock_that_is_never_free_ends_in_a_sentence(self) -> None:
        done = self.apt("update", 10**6, self.LOCKED)
        self.assertEqual(done.returncode, 1)
        self.assertIn("dev: apt's lock was not free for ten minutes: process 4711 (unattended-upgr) holds it. Wait "
                      "until that has ended, and try again.", done.stderr)

    def test_another_failure_is_not_tried_again(self) -> None:
        done = self.apt("install", 10**6, "E: Unable to locate package clang-format-19")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Unable to locate package", done.stderr)
        self.assertFalse(any(ask.startswith("sleep") for ask in self.asks()))


if __name__ == "__main__":
    unittest.main()
