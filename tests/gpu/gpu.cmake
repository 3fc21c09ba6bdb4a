# SPDX-License-Identifier: Apache-2.0
# Tests that need a GPU: one program for each file of tests/gpu, gpu_<name>, which `./dev test
# --gpu` runs in a process each. CI builds them; without a GPU each reports that and exits with 77.
if(NOT FRUGAL_CUDA)
  return()
endif()

add_library(frugal_gpu_main OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
frugal_program(frugal_gpu_main)
target_link_libraries(frugal_gpu_main PRIVATE doctest::doctest frugal::frugal)

add_custom_target(gpu_programs)
file(GLOB gpu_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
list(REMOVE_ITEM gpu_sources "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
foreach(source IN LISTS gpu_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(gpu_${name} EXCLUDE_FROM_ALL "${source}" $<TARGET_OBJECTS:frugal_gpu_main>)
  frugal_torch_program(gpu_${name})
  target_link_libraries(gpu_${name} PRIVATE doctest::doctest
    $<TARGET_NAME_IF_EXISTS:frugal::cluster>)
  target_include_directories(gpu_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")  # support/
  set_target_properties(gpu_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/gpu")
  add_dependencies(gpu_programs gpu_${name})
endforeach()
