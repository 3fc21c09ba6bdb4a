# SPDX-License-Identifier: Apache-2.0
# What is proven by compiling alone: headers that stand by themselves, code that must not compile.

# Sets `out` to TRUE if the file includes what matches, by itself or through other frugal headers.
function(frugal_includes out file what)
  set(${out} FALSE PARENT_SCOPE)
  set(open "${file}")
  set(seen "")
  while(open)
    list(POP_FRONT open current)
    if(current IN_LIST seen OR NOT EXISTS "${current}")
      continue()
    endif()
    list(APPEND seen "${current}")
    file(STRINGS "${current}" includes REGEX "^ *# *include *<")
    foreach(line IN LISTS includes)
      if(line MATCHES "<${what}")
        set(${out} TRUE PARENT_SCOPE)
        return()
      elseif(line MATCHES "<(frugal/[^>]+)>")
        list(APPEND open "${PROJECT_SOURCE_DIR}/include/${CMAKE_MATCH_1}")
      endif()
    endforeach()
  endwhile()
endfunction()

# One translation unit per header, which includes it twice and nothing else. Those that need no
# LibTorch are compiled without it, so an arrow that points the wrong way is found here too.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
  "${PROJECT_SOURCE_DIR}/include/*.hpp")
set(plain_units "")
set(archive_units "")
set(torch_units "")
foreach(header IN LISTS headers)
  string(REGEX REPLACE "[/.]" "_" name "${header}")
  set(unit "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp")
  file(CONFIGURE OUTPUT "${unit}" CONTENT "#include <${header}>\n#include <${header}>  // twice\n")
  frugal_includes(needs_torch "${PROJECT_SOURCE_DIR}/include/${header}" "(torch|ATen|c10)/")
  frugal_includes(needs_archive "${PROJECT_SOURCE_DIR}/include/${header}" "archive\\.h>")
  if(needs_torch)
    list(APPEND torch_units "${unit}")
  elseif(needs_archive)
    list(APPEND archive_units "${unit}")
  else()
    list(APPEND plain_units "${unit}")
  endif()
endforeach()
if(plain_units)
  add_library(headers_alone OBJECT ${plain_units})
  frugal_program(headers_alone)
  target_link_libraries(headers_alone PRIVATE frugal::headers)
endif()
if(archive_units AND FRUGAL_ARCHIVE)
  add_library(headers_alone_archive OBJECT ${archive_units})
  frugal_program(headers_alone_archive)
  target_link_libraries(headers_alone_archive PRIVATE frugal::archive)
endif()
if(torch_units AND FRUGAL_WITH_TORCH)
  add_library(headers_alone_torch OBJECT ${torch_units})
  frugal_torch_program(headers_alone_torch)
endif()

# Code that must not compile: reject/run.py says how the files are written. It takes its command
# lines from these two probes, so that flags and precompiled header are those of the build.
foreach(kind IN ITEMS plain torch)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/probe_${kind}.cpp"
    CONTENT "// Lends its command line to the tests of tests/reject.\n")
  if(kind STREQUAL plain OR FRUGAL_WITH_TORCH)
    add_library(reject_probe_${kind} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/probe_${kind}.cpp")
    set_target_properties(reject_probe_${kind} PROPERTIES EXPORT_COMPILE_COMMANDS ON)
  endif()
endforeach()
frugal_program(reject_probe_plain)
target_link_libraries(reject_probe_plain PRIVATE frugal::headers)
if(FRUGAL_WITH_TORCH)
  frugal_torch_program(reject_probe_torch)
endif()

file(GLOB rejects CONFIGURE_DEPENDS reject/*.cpp)
foreach(source IN LISTS rejects)
  get_filename_component(name "${source}" NAME_WE)
  file(STRINGS "${source}" head LIMIT_COUNT 5)
  if(head MATCHES "// needs: torch")
    set(kind torch)
    if(NOT FRUGAL_WITH_TORCH)
      continue()
    endif()
  else()
    set(kind plain)
  endif()
  add_test(NAME "reject: ${name}" COMMAND Python3::Interpreter
    "${CMAKE_CURRENT_SOURCE_DIR}/reject/run.py" "${source}"
    --commands "${CMAKE_BINARY_DIR}/compile_commands.json"
    --like "${CMAKE_CURRENT_BINARY_DIR}/probe_${kind}.cpp" --compiler "${CMAKE_CXX_COMPILER}")
endforeach()

# The judge is judged: files of which each must fail it in one way.
add_test(NAME "reject: run.py refuses what does not prove anything" COMMAND Python3::Interpreter
  "${CMAKE_CURRENT_SOURCE_DIR}/reject/self_test.py" --compiler "${CMAKE_CXX_COMPILER}")
