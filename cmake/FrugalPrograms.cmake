# SPDX-License-Identifier: Apache-2.0
# Compile options of frugal's own tests, examples and benchmarks: one set of flags, so that one
# precompiled header serves them all. They do not reach a project that uses frugal.

find_program(FRUGAL_CCACHE ccache)
find_program(FRUGAL_MOLD mold)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
mark_as_advanced(FRUGAL_CCACHE FRUGAL_MOLD)

# Wraps every compilation and records its cost; ./dev shows the slowest. Use the interpreter itself,
# in case python3 is a script that looks for one.
execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import sys; print(sys.executable)"
  OUTPUT_VARIABLE frugal_python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(frugal_launcher "${frugal_python};${PROJECT_SOURCE_DIR}/cmake/compile_meter.py;run;${PROJECT_BINARY_DIR}/compile_meter.jsonl")
if(FRUGAL_CCACHE)
  # CCACHE_DEPEND: uses the compiler's list of dependencies as the key. On a miss, a unit is then
  # not preprocessed first, which would cost as much as parsing a small one.
  list(APPEND frugal_launcher "${CMAKE_COMMAND}" -E env CCACHE_DEPEND=1
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${FRUGAL_CCACHE}")
endif()

add_library(frugal_program_options INTERFACE)
# Tests read frugal's output with a library that frugal does not use.
if(FRUGAL_BUILD_TESTS OR FRUGAL_BUILD_BENCH)
  find_package(nlohmann_json 3.10 QUIET)
  if(NOT TARGET nlohmann_json::nlohmann_json)
    message(FATAL_ERROR "frugal: the tests and benchmarks need nlohmann-json. On Debian: apt-get "
      "install nlohmann-json3-dev; or set FRUGAL_BUILD_TESTS=OFF and FRUGAL_BUILD_BENCH=OFF.")
  endif()
  target_link_libraries(frugal_program_options INTERFACE nlohmann_json::nlohmann_json)
endif()
target_compile_options(frugal_program_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${FRUGAL_WARNINGS_AS_ERRORS}>:-Werror>)
# From -O2 on, g++ 12 falsely warns of overlapping and overlong copies inside std::string (GCC bugs
# 105329, 105651); fixed in 13.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(frugal_program_options INTERFACE
    -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
target_compile_definitions(frugal_program_options INTERFACE
  FRUGAL_TEST_DIR="${PROJECT_SOURCE_DIR}/tests")
if(FRUGAL_MOLD)
  target_link_options(frugal_program_options INTERFACE -fuse-ld=mold)
endif()
if(FRUGAL_SANITIZE)
  target_compile_options(frugal_program_options INTERFACE
    -fsanitize=${FRUGAL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(frugal_program_options INTERFACE -fsanitize=${FRUGAL_SANITIZE})
endif()
if(FRUGAL_CCACHE)
  # With these, ccache keys a translation unit on the precompiled header's own key and on the
  # sources: https://ccache.dev/manual/4.7.html#_precompiled_headers
  target_compile_options(frugal_program_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# frugal_program(<target>): the compile options and the cache.
function(frugal_program target)
  target_link_libraries(${target} PRIVATE frugal_program_options)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_COMPILER_LAUNCHER "${frugal_launcher}")
endfunction()

# frugal_executable(<target> <source>...): an executable. With FRUGAL_SYNTAX_ONLY its sources are
# parsed and its templates instantiated, warnings are errors, and no code is generated. RUN as the
# first argument exempts a program that runs even then.
function(frugal_executable target)
  set(sources ${ARGN})
  list(POP_FRONT sources first)
  if(first STREQUAL RUN)
    add_executable(${target} ${sources})
  elseif(FRUGAL_SYNTAX_ONLY)
    add_library(${target} OBJECT ${first} ${sources})
    target_compile_options(${target} PRIVATE -fsyntax-only)
  else()
    add_executable(${target} ${first} ${sources})
  endif()
endfunction()

# frugal_torch_program(<target>): the same with frugal::frugal and the precompiled header.
function(frugal_torch_program target)
  frugal_program(${target})
  target_link_libraries(${target} PRIVATE frugal::frugal)
  target_precompile_headers(${target} REUSE_FROM frugal_pch)
endfunction()
# frugal_compiled_program(<target>): likewise with frugal::compiled, which takes less time to compile.
# tests/odr and tests/gpu use the headers alone, as most users do.
# What is only parsed has no use for it: its precompiled header and its own unit would cost a third of
# the time of such a build.
function(frugal_compiled_program target)
  if($CACHE{FRUGAL_SYNTAX_ONLY})
    frugal_torch_program(${target})
    return()
  endif()
  frugal_program(${target})
  target_link_libraries(${target} PRIVATE frugal::compiled)
  if(TARGET frugal_compiled_pch)
    target_precompile_headers(${target} REUSE_FROM frugal_compiled_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM frugal_pch)
  endif()
endfunction()

# frugal_program_of(<variable> <target> <source>): the program of one file, as its first lines say:
# `// torch-free`, `// needs:` with components, and `// takes: arrow` with components that it uses where
# they are there, as FRUGAL_HAS_ARROW says. Sets the variable to whether it can be built here.
function(frugal_program_of variable target source)
  file(STRINGS "${source}" head LIMIT_COUNT 5)
  frugal_needs(needs "${source}")
  frugal_at_hand(buildable ${needs})
  if(NOT buildable OR NOT (head MATCHES "// torch-free" OR FRUGAL_WITH_TORCH))
    set(${variable} FALSE PARENT_SCOPE)
    return()
  endif()
  set(${variable} TRUE PARENT_SCOPE)
  frugal_executable(${target} "${source}")
  if(head MATCHES "// torch-free")
    frugal_program(${target})
    target_link_libraries(${target} PRIVATE frugal::headers)
  elseif(FRUGAL_PRECOMPILE_ALL)
    # A build of everything has frugal::compiled anyway; others would build it for one program.
    frugal_compiled_program(${target})
  else()
    frugal_torch_program(${target})
  endif()
  list(TRANSFORM needs PREPEND "frugal::")
  target_link_libraries(${target} PRIVATE ${needs})
  if(head MATCHES "// takes: ([a-z ]+)")
    string(REPLACE " " ";" takes "${CMAKE_MATCH_1}")
    foreach(component IN LISTS takes)
      frugal_at_hand(there ${component})
      if(there)
        string(TOUPPER "FRUGAL_HAS_${component}" definition)
        target_link_libraries(${target} PRIVATE frugal::${component})
        target_compile_definitions(${target} PRIVATE ${definition})
      endif()
    endforeach()
  endif()
endfunction()

# LibTorch's headers take 15 s per file; precompiled they take 5. tests/pch.hpp lists the contents.
if(FRUGAL_WITH_TORCH)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/frugal_pch.cpp"
    CONTENT "// Holds the precompiled header; has nothing of its own.\n")
  add_library(frugal_pch OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/frugal_pch.cpp")
  if(FRUGAL_SYNTAX_ONLY)  # g++ takes 20 s for the code of an empty file with this header
    set_source_files_properties("${PROJECT_BINARY_DIR}/frugal_pch.cpp" PROPERTIES COMPILE_OPTIONS -fsyntax-only)
  endif()
  frugal_program(frugal_pch)
  target_link_libraries(frugal_pch PRIVATE frugal::frugal)
  target_precompile_headers(frugal_pch PRIVATE "${PROJECT_SOURCE_DIR}/tests/pch.hpp")
  frugal_program(frugal_compiled)
  # Two of them when they have frugal's headers, which are others with frugal::compiled.
  if(FRUGAL_PRECOMPILE_ALL)
    target_precompile_headers(frugal_pch PRIVATE <frugal/frugal.hpp>)
    add_library(frugal_compiled_pch OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/frugal_pch.cpp")
    frugal_program(frugal_compiled_pch)
    target_link_libraries(frugal_compiled_pch PRIVATE frugal::compiled)
    target_precompile_headers(frugal_compiled_pch PRIVATE
      "${PROJECT_SOURCE_DIR}/tests/pch.hpp" <frugal/frugal.hpp>)
  endif()
endif()
