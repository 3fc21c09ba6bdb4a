# SPDX-License-Identifier: Apache-2.0
# Tests by compilation alone: self-contained headers, and code that must not compile.

# One translation unit per header, which includes it twice, as a program that links frugal::compiled does, then
# the bodies of its functions, and nothing else. Headers without LibTorch are compiled without it, so that an
# include in the wrong direction is found here too.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
  "${PROJECT_SOURCE_DIR}/include/*.hpp")
# Unless FRUGAL_EVERY_HEADER: only the headers that users include, which pages and examples show or no
# other header includes. The others come with them; every one takes a quarter of an hour of two cores.
option(FRUGAL_EVERY_HEADER "compile every header by itself in headers_alone" OFF)
if(NOT FRUGAL_EVERY_HEADER)
  file(GLOB_RECURSE showing CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md"
    "${PROJECT_SOURCE_DIR}/examples/*.cpp")
  # Not in the search, which would go through folders of .frugal/ that another stage is removing.
  list(APPEND showing "${PROJECT_SOURCE_DIR}/README.md")
  set(inner "")
  file(GLOB_RECURSE including CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.hpp" "${PROJECT_SOURCE_DIR}/include/*.ipp")
  foreach(file IN LISTS including)
    file(STRINGS "${file}" lines REGEX "^#include <frugal/")
    if(file MATCHES "ipp$")  # its own header does not count
      list(POP_FRONT lines)
    endif()
    list(APPEND inner ${lines})
  endforeach()
  set(shown "")
  foreach(file IN LISTS showing)
    file(STRINGS "${file}" lines REGEX "#include <frugal/")
    list(APPEND shown ${lines})
  endforeach()
  foreach(list IN ITEMS inner shown)
    list(TRANSFORM ${list} REPLACE ".*<(frugal/[^>]*)>.*" "\\1")
    list(REMOVE_DUPLICATES ${list})
  endforeach()
  # All that frugal::compiled's own files include, and what the outside program of tests/package includes first.
  list(REMOVE_ITEM headers frugal/src.hpp frugal/src_cluster.hpp frugal/frugal.hpp)
  foreach(header IN LISTS headers)
    if(header IN_LIST inner AND NOT header IN_LIST shown)
      list(REMOVE_ITEM headers "${header}")
    endif()
  endforeach()
endif()
set(plain_units "")
foreach(component IN LISTS frugal_components)
  set(${component}_units "")
endforeach()
set(torch_units "")
set(patterns "torch=(torch|ATen|c10)/")
foreach(component IN LISTS frugal_components)
  list(APPEND patterns "${component}=${frugal_${component}_headers}")
endforeach()
list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/include/")
frugal_includes(lines ${headers} PATTERNS ${patterns})
foreach(line IN LISTS lines)
  string(REPLACE "|" ";" needs "${line}")
  list(POP_FRONT needs header)
  string(REPLACE "${PROJECT_SOURCE_DIR}/include/" "" header "${header}")
  string(REPLACE "/" "__" name "${header}")  # report/plan/memory.hpp is not plan_memory.hpp
  string(REPLACE "." "_" name "${name}")
  set(unit "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp")
  set(text "#define FRUGAL_COMPILED\n#include <${header}>\n#include <${header}>  // twice\n")
  string(REGEX REPLACE "hpp$" "ipp" bodies "${header}")
  if(EXISTS "${PROJECT_SOURCE_DIR}/include/${bodies}")
    string(APPEND text "#include <${bodies}>\n")
  endif()
  file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}")
  set(needs_torch FALSE)
  if("torch" IN_LIST needs)
    set(needs_torch TRUE)
    list(REMOVE_ITEM needs torch)
  endif()
  frugal_at_hand(buildable ${needs})
  if(NOT buildable)
    continue()
  elseif(needs_torch)
    list(APPEND torch_units "${unit}")
  elseif(needs)
    list(GET needs 0 component)
    list(APPEND ${component}_units "${unit}")
  else()
    list(APPEND plain_units "${unit}")
  endif()
endforeach()
# Not in `all`: one compiler suffices for what does not depend on it. No code is generated, so that
# a header costs only its parsing.
add_custom_target(headers_alone)
if(plain_units)
  add_library(headers_alone_plain OBJECT EXCLUDE_FROM_ALL ${plain_units})
  frugal_program(headers_alone_plain)
  target_compile_options(headers_alone_plain PRIVATE -fsyntax-only)
  target_link_libraries(headers_alone_plain PRIVATE frugal::headers)
  add_dependencies(headers_alone headers_alone_plain)
endif()
foreach(component IN LISTS frugal_components)
  if(${component}_units)
    add_library(headers_alone_${component} OBJECT EXCLUDE_FROM_ALL ${${component}_units})
    frugal_program(headers_alone_${component})
    target_compile_options(headers_alone_${component} PRIVATE -fsyntax-only)
    add_dependencies(headers_alone headers_alone_${component})
    target_link_libraries(headers_alone_${component} PRIVATE ${components_at_hand})
  endif()
endforeach()
if(torch_units AND FRUGAL_WITH_TORCH)
  # A precompiled header of what almost every one includes, and no more: torch/torch.h would hide a
  # missing include, and parsing it takes three times as long.
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/headers/narrow.cpp"
    CONTENT "// Holds the precompiled header; has nothing of its own.\n")
  add_library(headers_alone_pch OBJECT EXCLUDE_FROM_ALL
    "${CMAKE_CURRENT_BINARY_DIR}/headers/narrow.cpp")
  frugal_program(headers_alone_pch)
  target_link_libraries(headers_alone_pch PRIVATE frugal::frugal ${components_at_hand})
  target_precompile_headers(headers_alone_pch PRIVATE <ATen/ATen.h> <torch/nn/module.h>)
  add_library(headers_alone_torch OBJECT EXCLUDE_FROM_ALL ${torch_units})
  frugal_program(headers_alone_torch)
  target_compile_options(headers_alone_torch PRIVATE -fsyntax-only)
  target_precompile_headers(headers_alone_torch REUSE_FROM headers_alone_pch)
  add_dependencies(headers_alone headers_alone_torch)
  target_link_libraries(headers_alone_torch PRIVATE frugal::frugal ${components_at_hand})
endif()

# Code that must not compile: reject/run.py explains the format of the files. It takes its command
# lines from these two probes, so that flags and precompiled header are those of the build.
foreach(kind IN ITEMS plain torch)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/probe_${kind}.cpp"
    CONTENT "// Lends its command line to the tests of tests/reject.\n")
  if(kind STREQUAL plain OR (FRUGAL_WITH_TORCH AND NOT FRUGAL_SYNTAX_ONLY))
    add_library(reject_probe_${kind} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/probe_${kind}.cpp")
    set_target_properties(reject_probe_${kind} PROPERTIES EXPORT_COMPILE_COMMANDS ON)
  endif()
endforeach()
frugal_program(reject_probe_plain)
target_link_libraries(reject_probe_plain PRIVATE frugal::headers)
if(TARGET reject_probe_torch)
  frugal_compiled_program(reject_probe_torch)
  # Some cases include headers of this component.
  target_link_libraries(reject_probe_torch PRIVATE $<TARGET_NAME_IF_EXISTS:frugal::cluster>)
endif()

# One test compiles all cases of a kind, most of them in one unit (reject/unit.py), and writes a
# result for each; a test for each case reads it. ctest runs the first whenever it runs one of the
# others.
file(GLOB rejects CONFIGURE_DEPENDS reject/*.cpp)
set(rejects_plain "")
set(rejects_torch "")
foreach(source IN LISTS rejects)
  file(STRINGS "${source}" head LIMIT_COUNT 5)
  if(head MATCHES "// needs: torch")
    list(APPEND rejects_torch "${source}")
  else()
    list(APPEND rejects_plain "${source}")
  endif()
endforeach()
set(kinds_plain "without LibTorch")
set(kinds_torch "with LibTorch")
foreach(kind IN ITEMS plain torch)
  # One compiler rejects for the other: g++ takes three minutes of one core for the cases with LibTorch.
  if(NOT TARGET reject_probe_${kind} OR (FRUGAL_SYNTAX_ONLY AND kind STREQUAL torch))
    continue()
  endif()
  set(probe --kind ${kind} --commands "${CMAKE_BINARY_DIR}/compile_commands.json"
    --like "${CMAKE_CURRENT_BINARY_DIR}/probe_${kind}.cpp" --compiler "${CMAKE_CXX_COMPILER}"
    "--folder=${PROJECT_BINARY_DIR}/reject")  # one word: tools/focus.py takes a path for a target
  set(setup "reject: the cases ${kinds_${kind}} compile in one unit")
  add_test(NAME "${setup}" COMMAND Python3::Interpreter
    "${CMAKE_CURRENT_SOURCE_DIR}/reject/run.py" ${probe} ${rejects_${kind}})
  # Two compilers at a time; if the unit proves nothing, each case is compiled alone.
  set_tests_properties("${setup}" PROPERTIES LABELS "reject_${kind}"
    FIXTURES_SETUP reject_${kind} PROCESSORS 2 COST 900 TIMEOUT 3600)
  foreach(source IN LISTS rejects_${kind})
    get_filename_component(name "${source}" NAME_WE)
    add_test(NAME "reject: ${name}"
      COMMAND "${CMAKE_COMMAND}" -E cat "${PROJECT_BINARY_DIR}/reject/${name}.cpp.json")
    set_tests_properties("reject: ${name}" PROPERTIES LABELS "reject_${kind}"
      FIXTURES_REQUIRED reject_${kind} PASS_REGULAR_EXPRESSION "\n \"verdict\": \"passed\"\n")
  endforeach()
endforeach()

# Tests of run.py itself: files that it must refuse, each for one reason.
add_test(NAME "reject: run.py refuses what does not prove anything" COMMAND Python3::Interpreter
  "${CMAKE_CURRENT_SOURCE_DIR}/reject/self_test.py" --compiler "${CMAKE_CXX_COMPILER}")
