# SPDX-License-Identifier: Apache-2.0
# Saves that are killed or fail at every call to the file system: run.py iterates over the calls,
# shim.cpp injects the faults.

# frugal_fault_test(<sentence> <program> [argument...])
function(frugal_fault_test sentence)
  add_test(NAME "fault: ${sentence}" COMMAND ${ARGN})
  # Seconds on an idle machine; waits within a test have their own limits.
  set_tests_properties("fault: ${sentence}" PROPERTIES LABELS fault TIMEOUT 900)
endfunction()

# A sanitizer's library must be loaded before the shim, and LD_PRELOAD is the shim's. One compiler suffices:
# clang's programs are tested.
if(FRUGAL_SANITIZE OR FRUGAL_SYNTAX_ONLY)
  return()
endif()

add_library(frugal_fault SHARED "${CMAKE_CURRENT_LIST_DIR}/shim.cpp")
frugal_program(frugal_fault)
target_link_libraries(frugal_fault PRIVATE ${CMAKE_DL_LIBS})
frugal_executable(fault_save "${CMAKE_CURRENT_LIST_DIR}/save.cpp")
frugal_program(fault_save)
target_link_libraries(fault_save PRIVATE frugal::headers)
add_dependencies(test_programs frugal_fault fault_save)

foreach(pair IN ITEMS
    "kill|a save that is killed at any call leaves the old checkpoint or the new one, whole"
    "fail|a call that fails is an error that names it, and the last good checkpoint survives"
    "persist|a disk that is full, read-only or dead from any call on leaves the last good checkpoint"
    "resume|a start that cannot read says so, and does not find less than there is"
    "order|nothing gets its name before it is on the disk, and nothing is removed before that"
    "self|the test of faults finds a program that leaves half a checkpoint")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 test)
  list(GET pair 1 sentence)
  frugal_fault_test("${sentence}" Python3::Interpreter
    "${CMAKE_CURRENT_LIST_DIR}/run.py" --program "$<TARGET_FILE:fault_save>"
    --shim "$<TARGET_FILE:frugal_fault>" ${test})
endforeach()

if(FRUGAL_ARCHIVE)
  frugal_executable(fault_archive "${CMAKE_CURRENT_LIST_DIR}/archive.cpp")
  frugal_program(fault_archive)
  target_link_libraries(fault_archive PRIVATE frugal::archive)
  add_dependencies(test_programs fault_archive)
  foreach(pair IN ITEMS
      "kill|a move to cold storage that is killed at any call leaves each checkpoint here or there"
      "fail|a call that fails on the way to cold storage loses no checkpoint"
      "restore|a restore that is broken at any call changes nothing, or is done")
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 test)
    list(GET pair 1 sentence)
    frugal_fault_test("${sentence}" Python3::Interpreter
      "${CMAKE_CURRENT_LIST_DIR}/archive.py" --program "$<TARGET_FILE:fault_archive>"
      --shim "$<TARGET_FILE:frugal_fault>" ${test})
  endforeach()
endif()

if(NOT FRUGAL_WITH_TORCH)
  return()
endif()

# Whole trainers. LibTorch is loaded once, and each start is a fork. FRUGAL_FAULT_EVERY=N runs every
# N-th case.
find_package(CLI11 REQUIRED)
frugal_executable(fault_train "${CMAKE_CURRENT_LIST_DIR}/train.cpp")
frugal_compiled_program(fault_train)
target_link_libraries(fault_train PRIVATE CLI11::CLI11 ${CMAKE_DL_LIBS})
target_include_directories(fault_train PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")  # support/
add_dependencies(test_programs fault_train)

foreach(line IN ITEMS
    "random --runs 75 --seed 1|trainers that are killed at random instants end in the bits of one that was not"
    "calls --stride 12 --shim $<TARGET_FILE:frugal_fault>|trainers whose save is killed or fails at any call lose nothing, and say what failed"
    "damage --positions 1200|trainers that find their newest checkpoint damaged go on from the one before it"
    "cycles --count 1000|hundreds of saves and resumes leave no thread, descriptor, temporary or memory behind"
    "self|the test of trainers finds a job that does not resume exactly")
  string(REPLACE "|" ";" line "${line}")
  list(GET line 0 arguments)
  list(GET line 1 sentence)
  separate_arguments(arguments UNIX_COMMAND "${arguments}")
  frugal_fault_test("${sentence}" fault_train ${arguments})
endforeach()
