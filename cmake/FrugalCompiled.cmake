# SPDX-License-Identifier: Apache-2.0
# frugal::compiled: frugal::frugal for projects of several programs or of long compile times. The functions
# of the .ipp files, which know no recipe, are compiled once, into a static library of the project's own
# build, with the project's compiler and flags. What links it is compiled with FRUGAL_COMPILED, with which
# the headers leave these files out: frugal/inline.hpp. Not built unless something links it. The functions of
# cluster/ are a file of their own, which links into programs that use them, and so needs no component.
if(TARGET frugal::torch AND NOT TARGET frugal_compiled)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/frugal_compiled.cpp"
    CONTENT "#include <frugal/src.hpp>\n")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/frugal_compiled_cluster.cpp"
    CONTENT "#include <frugal/src_cluster.hpp>\n")
  add_library(frugal_compiled STATIC EXCLUDE_FROM_ALL
    "${CMAKE_CURRENT_BINARY_DIR}/frugal_compiled.cpp"
    "${CMAKE_CURRENT_BINARY_DIR}/frugal_compiled_cluster.cpp")
  target_include_directories(frugal_compiled SYSTEM PRIVATE "${CMAKE_CURRENT_LIST_DIR}/gloo")
  add_library(frugal::compiled ALIAS frugal_compiled)
  target_link_libraries(frugal_compiled PUBLIC frugal::frugal)
  target_compile_definitions(frugal_compiled INTERFACE FRUGAL_COMPILED)
endif()
