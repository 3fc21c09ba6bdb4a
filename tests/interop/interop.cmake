# SPDX-License-Identifier: Apache-2.0
# The programs that the scripts of this folder run: interop_x for x.py. The scripts need the Python
# packages that are pinned in requirements/data.txt, so `./dev test --all` runs them, and ctest does not.
# g++ does not parse them: its examples and tests have the same templates.
if(FRUGAL_SYNTAX_ONLY)
  return()
endif()
add_custom_target(interop_programs)
file(GLOB interop CONFIGURE_DEPENDS interop/*.cpp)
foreach(source IN LISTS interop)
  get_filename_component(name "${source}" NAME_WE)
  frugal_program_of(made interop_${name} "${source}")
  if(NOT made)
    continue()
  endif()
  add_dependencies(interop_programs interop_${name})
endforeach()
