# SPDX-License-Identifier: Apache-2.0
"""Conan recipe of frugal: headers and their CMake package.

LibTorch, RapidJSON, xxHash and zlib may come from the system: debian12.profile next
to this file declares them so, and then nothing is downloaded.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.1"


class Frugal(ConanFile):
    name = "frugal"
    description = "Cost-saving training policies for LibTorch, composed as template parameters"
    license = "Apache-2.0"
    topics = ("libtorch", "pytorch", "training", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    # cuda, and the components of cmake/FrugalComponents.cmake.
    options = {name: [True, False] for name in
               ("apply", "archive", "arrow", "avro", "cluster", "cuda", "images", "notices",
                "prometheus", "recipes", "step", "tensorboard", "text")}
    default_options = {
        **{name: False for name in options},
        "libarchive/*:with_zstd": True,
        "arrow/*:parquet": True,
        "arrow/*:with_csv": True,
        "arrow/*:with_json": True,
    }
    no_copy_source = True

    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._checkout(), "include", "frugal", "version.hpp"))
        self.version = re.search(r'string_view version = "(.+?)"', header).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "cmake/*"):
            copy(self, pattern, src=self._checkout(), dst=self.export_sources_folder)

    def requirements(self):
        self.requires("libtorch/[>=2.9]", transitive_headers=True, transitive_libs=True)
        self.requires("rapidjson/[>=1.1.0, include_prerelease]", transitive_headers=True)
        self.requires("xxhash/[>=0.8]", transitive_headers=True, transitive_libs=True)
        self.requires("zlib/[>=1.2.11 <2]", transitive_headers=True, transitive_libs=True)

        if self.options.apply:
            self.requires("cli11/[>=2.1]", transitive_headers=True)
            self.requires("tomlplusplus/[>=3.3]", transitive_headers=True)
        if self.options.archive:
            self.requires("libarchive/[>=3.6]", transitive_headers=True, transitive_libs=True)
        if self.options.arrow:
            self.requires("arrow/[>=14]", transitive_headers=True, transitive_libs=True)
        if self.options.avro:  # libavro is the system's
            self.requires("zstd/[>=1.5]", transitive_headers=True, transitive_libs=True)
        if self.options.images:
            self.requires("libjpeg-turbo/[>=2.1]", transitive_headers=True, transitive_libs=True)
        if self.options.images or self.options.tensorboard:
            self.requires("libpng/[>=1.6]", transitive_headers=True, transitive_libs=True)
        if self.options.notices:
            self.requires("libcurl/[>=7.87]", transitive_headers=True, transitive_libs=True)
        # prometheus-cpp is the system's
        if self.options.recipes or self.options.tensorboard:
            self.requires("boost/[>=1.74]", transitive_headers=True)
        if self.options.tensorboard:
            self.requires("protozero/[>=1.7]", transitive_headers=True)
        if self.options.text:  # SentencePiece is the system's
            self.requires("utf8proc/[>=2.8]", transitive_headers=True, transitive_libs=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        # LibTorch is found when the package is used, not when it is built.
        toolchain.cache_variables["FRUGAL_WITH_TORCH"] = False
        for name, given in self.options.items():
            toolchain.cache_variables[f"FRUGAL_{name.upper()}"] = given == "True"
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"FRUGAL_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        # One package for all compilers; the CMake package records which options are on.
        self.info.settings.clear()

    def package_info(self):
        # frugal has its own CMake package, which also finds LibTorch.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "frugal")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
