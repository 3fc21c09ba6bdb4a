# SPDX-License-Identifier: Apache-2.0
# frugal::compiled: frugal::frugal for projects of several programs or of long compile times. The
# functions that know no recipe are compiled once, into a static library of the project's own build,
# with the project's compiler and flags, from the headers. What links it gets a copy of the headers that
# only declares these functions: frugal/inline.hpp. Not built unless something links it.
#
# From sources, declarations.py makes this copy during the build. An installed package has it.
if(TARGET frugal::torch AND NOT TARGET frugal_compiled)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/frugal_compiled.cpp"
    CONTENT "#include <frugal/src.hpp>\n")
  add_library(frugal_compiled STATIC EXCLUDE_FROM_ALL
    "${CMAKE_CURRENT_BINARY_DIR}/frugal_compiled.cpp")
  add_library(frugal::compiled ALIAS frugal_compiled)
  target_link_libraries(frugal_compiled PUBLIC frugal::frugal)
  # Otherwise clang leaves out the symbol of a complete object's constructor, if it is that of the base.
  target_compile_options(frugal_compiled PRIVATE
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -mno-constructor-aliases>")
  # Whatever links this target has the property, and frugal::headers gives it the other folder: in place
  # of the headers and not before them, so that the order of link libraries does not matter.
  set_target_properties(frugal_compiled PROPERTIES
    INTERFACE_FRUGAL_COMPILED ON COMPATIBLE_INTERFACE_BOOL FRUGAL_COMPILED)
  if(frugal_declarations_dir)
    file(GLOB_RECURSE _frugal_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.hpp")
    list(REMOVE_ITEM _frugal_headers "${PROJECT_SOURCE_DIR}/include/frugal/src.hpp")
    # As outputs, so that Ninja looks at them again afterwards: it compiles what includes a changed one,
    # and no more.
    list(TRANSFORM _frugal_headers REPLACE "^${PROJECT_SOURCE_DIR}/include" "${frugal_declarations_dir}"
      OUTPUT_VARIABLE _frugal_declarations)
    set(_frugal_make "${frugal_python3}" "${PROJECT_SOURCE_DIR}/cmake/declarations.py"
      "${PROJECT_SOURCE_DIR}/include" "${frugal_declarations_dir}")
    if(NOT frugal_python3)
      set(_frugal_declarations "")  # Ninja would print all their names with the sentence
      set(_frugal_make "${CMAKE_COMMAND}" -E echo
        "frugal: frugal::compiled needs Python 3, and there is no python3. Install it, \
or link frugal::frugal."
        COMMAND "${CMAKE_COMMAND}" -E false)
    endif()
    add_custom_command(OUTPUT "${frugal_declarations_dir}/stamp" BYPRODUCTS ${_frugal_declarations}
      COMMAND ${_frugal_make}
      COMMAND "${CMAKE_COMMAND}" -E touch "${frugal_declarations_dir}/stamp"
      DEPENDS ${_frugal_headers} "${PROJECT_SOURCE_DIR}/cmake/declarations.py"
      COMMENT "Declaring what frugal::compiled has" VERBATIM)
    target_sources(frugal_compiled PRIVATE "${frugal_declarations_dir}/stamp")
  endif()
endif()
