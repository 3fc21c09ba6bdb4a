# SPDX-License-Identifier: Apache-2.0
# Tests that need a GPU: one program, gpu_tests, of all files of tests/gpu. gpu_<name> is a link to it, and runs the
# cases of <name>.cpp; `./dev test --gpu` starts each in a process of its own. CI builds them; without a GPU each
# reports that and exits with 77.
if(NOT FRUGAL_CUDA)
  return()
endif()

file(GLOB gpu_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
add_executable(gpu_tests EXCLUDE_FROM_ALL ${gpu_sources})
frugal_torch_program(gpu_tests)
target_link_libraries(gpu_tests PRIVATE doctest::doctest $<TARGET_NAME_IF_EXISTS:frugal::cluster>)
target_include_directories(gpu_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")  # support/
# Few units: each compiles again what all of them use of frugal's headers.
set_target_properties(gpu_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/gpu"
  UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/main.cpp" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

foreach(source IN LISTS gpu_sources)
  get_filename_component(name "${source}" NAME_WE)
  if(NOT name STREQUAL "main")
    add_custom_command(TARGET gpu_tests POST_BUILD
      COMMAND "${CMAKE_COMMAND}" -E create_symlink gpu_tests "${PROJECT_BINARY_DIR}/gpu/gpu_${name}")
  endif()
endforeach()
add_custom_target(gpu_programs DEPENDS gpu_tests)
