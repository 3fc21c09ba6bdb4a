# SPDX-License-Identifier: Apache-2.0
# The program of bench/gpu.py. Built only on request: it needs a GPU to run.
if(FRUGAL_WITH_TORCH AND FRUGAL_CUDA AND TARGET CLI11::CLI11)
  add_executable(bench_gpu EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/rounds.cpp"
    "${CMAKE_CURRENT_LIST_DIR}/packages.cpp")
  frugal_torch_program(bench_gpu)
  target_link_libraries(bench_gpu PRIVATE CLI11::CLI11)
  set_target_properties(bench_gpu PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/gpu")
endif()
