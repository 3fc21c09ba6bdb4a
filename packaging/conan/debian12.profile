# SPDX-License-Identifier: Apache-2.0
# Debian 12 with its own libraries and a LibTorch that FRUGAL_LIBTORCH or python3 names: nothing is
# downloaded. conan create packaging/conan --profile:all packaging/conan/debian12.profile --no-remote
[settings]
os=Linux
arch=x86_64
compiler=gcc
compiler.version=12
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Release

[platform_requires]
rapidjson/1.1.0
xxhash/0.8.1
zlib/1.2.13
libtorch/2.11.0
libarchive/3.6.2
libcurl/7.88.1

[conf]
tools.cmake.cmaketoolchain:generator=Ninja
