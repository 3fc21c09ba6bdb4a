# SPDX-License-Identifier: Apache-2.0
# The programs that the scripts of this folder run. The scripts need Python packages that are pinned
# in requirements/interop.txt, so `./dev test --all` runs them, and ctest does not.

frugal_executable(interop_safetensors interop/safetensors.cpp)
frugal_program(interop_safetensors)
target_link_libraries(interop_safetensors PRIVATE frugal::headers)
