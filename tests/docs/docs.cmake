# SPDX-License-Identifier: Apache-2.0
# The documentation, tried: check.py says what is checked and how pages mark their code.

file(GLOB_RECURSE docs_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md")
list(APPEND docs_pages "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md")

add_test(NAME "docs: code, quoted sentences and links of the pages are those of the sources"
  COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/check.py" check "${PROJECT_SOURCE_DIR}")
add_test(NAME "docs: the checker finds what is wrong with a page"
  COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/self_test.py")

if(FRUGAL_WITH_TORCH AND NOT FRUGAL_NOTICES)
  message(STATUS "frugal: FRUGAL_NOTICES=OFF, so the programs of the pages are not built")
elseif(FRUGAL_WITH_TORCH)
  # Two files, so that two cores have something to do and neither runs out of memory.
  set(docs_units "${CMAKE_CURRENT_BINARY_DIR}/docs_0.cpp" "${CMAKE_CURRENT_BINARY_DIR}/docs_1.cpp")
  add_custom_command(OUTPUT ${docs_units} VERBATIM
    COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/check.py" extract
      "${PROJECT_SOURCE_DIR}" ${docs_units}
    DEPENDS ${docs_pages} "${CMAKE_CURRENT_LIST_DIR}/check.py"
    COMMENT "Taking the programs out of the documentation")
  if(FRUGAL_ARCHIVE)
    list(APPEND docs_units "${CMAKE_CURRENT_LIST_DIR}/archive.cpp")
  endif()
  frugal_test_program(test_docs docs ${docs_units} "${CMAKE_CURRENT_LIST_DIR}/writing_a_policy.cpp")
  frugal_torch_program(test_docs)
  target_link_libraries(test_docs PRIVATE ${optional})
  set_target_properties(test_docs PROPERTIES UNITY_BUILD OFF)
endif()
