# SPDX-License-Identifier: Apache-2.0
# Tests of the documentation: check.py says what is checked and how pages mark their code.

file(GLOB_RECURSE docs_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md")
list(APPEND docs_pages "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md")

# This needs no compiler, so it runs in one configuration of CI.
if(NOT FRUGAL_SYNTAX_ONLY)
  add_test(NAME "docs: code, quoted sentences and links of the pages are those of the sources"
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/check.py" check "${PROJECT_SOURCE_DIR}")
  add_test(NAME "docs: the checker finds what is wrong with a page"
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/self_test.py")
  add_test(NAME "docs: the page on migration has every argument of the trainers it compares with"
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/migrate_test.py")
endif()

frugal_at_hand(docs_buildable ${frugal_components})
if(FRUGAL_WITH_TORCH AND NOT docs_buildable)
  message(STATUS "frugal: without some component, so the programs of the pages are not built")
elseif(FRUGAL_WITH_TORCH AND NOT FRUGAL_SYNTAX_ONLY)
  # Several files, so that two cores are used and no compiler takes three gigabytes.
  set(docs_units "")
  # g++ needs longer to load the precompiled header than to parse a page.
  set(last_part 4)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(last_part 2)
  endif()
  foreach(n RANGE ${last_part})
    list(APPEND docs_units "${CMAKE_CURRENT_BINARY_DIR}/docs_${n}.cpp")
  endforeach()
  add_custom_command(OUTPUT ${docs_units} VERBATIM
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/check.py" extract
      "${PROJECT_SOURCE_DIR}" ${docs_units}
    DEPENDS ${docs_pages} "${CMAKE_CURRENT_LIST_DIR}/check.py"
    COMMENT "Taking the programs out of the documentation")
  set(docs_written "${CMAKE_CURRENT_LIST_DIR}/writing_a_policy.cpp"
    "${CMAKE_CURRENT_LIST_DIR}/writing_a_sink.cpp"
    "${CMAKE_CURRENT_LIST_DIR}/archive.cpp")
  frugal_test_program(test_docs docs ${docs_units} ${docs_written})
  frugal_compiled_program(test_docs)
  target_link_libraries(test_docs PRIVATE ${components_at_hand})
  set_target_properties(test_docs PROPERTIES UNITY_BUILD OFF)
  frugal_test_files(test_docs docs torch ${docs_written})

  # A test for each page that contains programs.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${docs_pages})
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/check.py" runs
    "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE runs OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" runs "${runs}")
  foreach(page IN LISTS runs)
    string(REGEX REPLACE "^(docs/)?(.*)\\.md$" "docs: \\2" name "${page}")
    frugal_add_file_test("${name}" docs test_docs "${page}")
    string(MAKE_C_IDENTIFIER "${page}" unit)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/pages/${unit}.cpp")
    add_custom_command(OUTPUT "${unit}" VERBATIM
      COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/check.py" extract-page
        "${PROJECT_SOURCE_DIR}" "${page}" "${unit}"
      DEPENDS "${PROJECT_SOURCE_DIR}/${page}" "${CMAKE_CURRENT_LIST_DIR}/check.py"
      COMMENT "Taking the programs out of ${page}")
    frugal_alone("${name}" "${unit}")
    frugal_compiled_program(${alone})
    target_link_libraries(${alone} PRIVATE ${components_at_hand})
  endforeach()
  frugal_run_files(test_docs)
endif()
