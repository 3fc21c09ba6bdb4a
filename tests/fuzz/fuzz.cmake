# SPDX-License-Identifier: Apache-2.0
# The fuzzers, with FRUGAL_FUZZ: fuzz_<name> for every file here, and their seed files. They need
# clang, and no LibTorch. `./dev test --all` runs each for some seconds on every core, or for
# FRUGAL_FUZZ_SECONDS; build/asan/tests/fuzz_safetensors -help=1 lists the options.

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "frugal: FRUGAL_FUZZ needs libFuzzer, which is clang's. Configure with \
-DCMAKE_CXX_COMPILER=clang++-19, or with cmake --preset fuzz.")
endif()

add_custom_target(fuzz)
file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/*.cpp)
foreach(source IN LISTS fuzzers)
  get_filename_component(name "${source}" NAME_WE)
  frugal_needs(needs "${source}")
  frugal_at_hand(buildable ${needs})
  if(NOT buildable)
    continue()
  endif()
  add_executable(fuzz_${name} "${source}")
  frugal_program(fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE frugal::headers)
  frugal_link_needs(fuzz_${name} "${source}")
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz fuzz_${name})
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds/${name}")
    add_custom_command(TARGET fuzz_${name} POST_BUILD VERBATIM
      COMMAND "${CMAKE_COMMAND}" -E copy_directory "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds/${name}"
        "${CMAKE_CURRENT_BINARY_DIR}/seeds/${name}")
  endif()
endforeach()

add_custom_command(TARGET fuzz_safetensors POST_BUILD VERBATIM
  COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds.py"
    "${CMAKE_CURRENT_BINARY_DIR}/seeds/safetensors")
