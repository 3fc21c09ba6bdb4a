# SPDX-License-Identifier: Apache-2.0
# Finds Apache Arrow with Parquet, and provides them as the imported target `FrugalArrow::arrow`.
#
# Search order; the first that exists is used:
#   1. what the user names: FRUGAL_PYARROW (CMake variable or environment), the folder of a pyarrow or
#      one that holds it;
#   2. the system's Arrow: find_package(Arrow) and find_package(Parquet), as its packages and vcpkg
#      install them, or targets that the project already has;
#   3. the pyarrow that python3 would import (it is located, never imported);
#   4. FRUGAL_PYARROW_HINTS, and the pinned wheel that ./dev brings.
#
# A wheel of pyarrow has the headers and the libraries, the latter by their full versions alone
# (libarrow.so.2600), so they are linked by path. Its libraries link the C++ library of the system, with
# the ABI of GCC 5 and later, as LibTorch's do. The wheel's libparquet also exports an OpenSSL: programs
# that do not use Parquet must not link it, hence --as-needed.
#
# Result: FrugalArrow_FOUND, FrugalArrow_VERSION, FrugalArrow_ROOT, FrugalArrow_ORIGIN.

# The interface that frugal/data/arrow uses: results instead of pointers to them, in FileReader.
set(_frugal_arrow_oldest 24)

# Sets `out` to the folder of pyarrow at the path or in it, or to nothing.
function(_frugal_arrow_root out path)
  set(${out} "" PARENT_SCOPE)
  if(NOT path)
    return()
  endif()
  get_filename_component(path "${path}" ABSOLUTE)
  foreach(candidate "${path}" "${path}/pyarrow")
    if(EXISTS "${candidate}/include/arrow/util/config.h")
      get_filename_component(candidate "${candidate}" REALPATH)
      set(${out} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# The version in the headers; `so` is the number in the names of the libraries.
function(_frugal_arrow_version out so root)
  set(${out} "" PARENT_SCOPE)
  set(${so} "" PARENT_SCOPE)
  if(NOT root)
    return()
  endif()
  file(READ "${root}/include/arrow/util/config.h" text)
  if(text MATCHES "define ARROW_VERSION_STRING \"([0-9.]+)")
    set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
  if(text MATCHES "define ARROW_SO_VERSION \"([0-9]+)\"")
    set(${so} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

# Where python3 would import pyarrow from.
function(_frugal_arrow_of_python out)
  set(${out} "" PARENT_SCOPE)
  set(names python3 python)
  if(FRUGAL_PYTHON)
    set(names "${FRUGAL_PYTHON}")
  endif()
  find_program(_frugal_python NAMES ${names} NO_CACHE)
  if(_frugal_python)
    execute_process(
      COMMAND "${_frugal_python}" -c "import importlib.util as u
s = u.find_spec('pyarrow')
print(s.submodule_search_locations[0] if s and s.submodule_search_locations else '')"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    _frugal_arrow_root(found "${found}")
    set(${out} "${found}" PARENT_SCOPE)
  endif()
endfunction()

# Sets `fault` to why the pyarrow in `root` cannot be used, or to nothing.
function(_frugal_arrow_fault fault root)
  set(${fault} "" PARENT_SCOPE)
  _frugal_arrow_version(version so "${root}")
  if(NOT version OR version VERSION_LESS _frugal_arrow_oldest)
    set(${fault} "${root} has Arrow ${version}, and frugal needs ${_frugal_arrow_oldest} or later"
      PARENT_SCOPE)
    return()
  endif()
  foreach(name arrow parquet)
    if(NOT EXISTS "${root}/lib${name}.so.${so}")
      set(${fault} "${root} has no lib${name}.so.${so}: this pyarrow was built against another Arrow"
        PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(NOT EXISTS "${root}/include/parquet/arrow/reader.h")
    set(${fault} "${root} has no headers of Parquet" PARENT_SCOPE)
  endif()
endfunction()

function(_frugal_arrow_of_wheel root)
  _frugal_arrow_version(version so "${root}")
  add_library(FrugalArrow::arrow INTERFACE IMPORTED GLOBAL)
  target_include_directories(FrugalArrow::arrow SYSTEM INTERFACE "${root}/include")
  target_compile_features(FrugalArrow::arrow INTERFACE cxx_std_20)
  # LibTorch's ABI, which is also that of the wheels: a std::string means the same in both.
  target_compile_definitions(FrugalArrow::arrow INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  # One string of linker options, from which CMake derives no run path of its own, and which it does
  # not take apart; FindFrugalTorch.cmake says why.
  target_link_options(FrugalArrow::arrow INTERFACE "LINKER:-rpath,${root}")
  target_link_libraries(FrugalArrow::arrow INTERFACE
    "-Wl,--push-state,--as-needed,${root}/libparquet.so.${so},${root}/libarrow.so.${so},--pop-state")
  set(FrugalArrow_VERSION "${version}" PARENT_SCOPE)
  set(FrugalArrow_ROOT "${root}" PARENT_SCOPE)
endfunction()

macro(_frugal_arrow_find)
  set(_frugal_named "${FRUGAL_PYARROW}")
  set(_frugal_how FRUGAL_PYARROW)
  if(NOT _frugal_named)
    set(_frugal_named "$ENV{FRUGAL_PYARROW}")
    set(_frugal_how "FRUGAL_PYARROW (environment)")
  endif()
  if(_frugal_named)
    _frugal_arrow_root(_frugal_root "${_frugal_named}")
    if(NOT _frugal_root)
      set(FrugalArrow_FAULT "${_frugal_how} names ${_frugal_named}, where there is no \
include/arrow/util/config.h. Name the folder of a pyarrow, or one that holds it.")
    else()
      _frugal_arrow_fault(FrugalArrow_FAULT "${_frugal_root}")
      if(FrugalArrow_FAULT)
        string(APPEND FrugalArrow_FAULT ". Name another one.")
      else()
        _frugal_arrow_of_wheel("${_frugal_root}")
        set(FrugalArrow_ORIGIN "${_frugal_how}")
      endif()
    endif()
  else()
    if(NOT TARGET Parquet::parquet_shared)
      find_package(Arrow ${_frugal_arrow_oldest} CONFIG QUIET)
      if(Arrow_FOUND)
        find_package(Parquet CONFIG QUIET)
      endif()
    endif()
    set(_frugal_passed_over "")
    if(TARGET Parquet::parquet_shared AND TARGET Arrow::arrow_shared)
      add_library(FrugalArrow::arrow INTERFACE IMPORTED GLOBAL)
      target_link_libraries(FrugalArrow::arrow INTERFACE Parquet::parquet_shared Arrow::arrow_shared)
      set(FrugalArrow_VERSION "${Arrow_VERSION}")
      set(FrugalArrow_ROOT "${Arrow_DIR}")
      set(FrugalArrow_ORIGIN "find_package(Arrow)")
    else()
      _frugal_arrow_of_python(_frugal_of_python)
      foreach(_frugal_candidate IN LISTS _frugal_of_python FRUGAL_PYARROW_HINTS
          _frugal_arrow_pinned)
        _frugal_arrow_root(_frugal_root "${_frugal_candidate}")
        if(_frugal_root)
          _frugal_arrow_fault(_frugal_fault "${_frugal_root}")
          if(NOT _frugal_fault)
            _frugal_arrow_of_wheel("${_frugal_root}")
            set(FrugalArrow_ORIGIN "a folder of pyarrow that ./dev got")
            if(_frugal_root STREQUAL "${_frugal_of_python}")
              set(FrugalArrow_ORIGIN "python3")
            endif()
            break()
          endif()
          string(APPEND _frugal_passed_over " (${_frugal_fault}.)")
        endif()
      endforeach()
      if(NOT TARGET FrugalArrow::arrow)
        set(FrugalArrow_FAULT "there is no Arrow ${_frugal_arrow_oldest} or later with \
Parquet.${_frugal_passed_over} Install Arrow's packages for C++, or `pip install pyarrow`, or set \
FRUGAL_PYARROW to the folder of one.")
      endif()
    endif()
  endif()
endmacro()

# What ./dev gets for the tests; an installed copy of this file has none.
set(_frugal_arrow_pinned "${CMAKE_CURRENT_LIST_DIR}/../.frugal/data-wheels")

if(TARGET FrugalArrow::arrow)
  set(FrugalArrow_FOUND TRUE)
  return()
endif()

unset(FrugalArrow_FAULT)
_frugal_arrow_find()

if(FrugalArrow_FAULT)
  set(FrugalArrow_FOUND FALSE)
  set(FrugalArrow_NOT_FOUND_MESSAGE "${FrugalArrow_FAULT}")
  if(FrugalArrow_FIND_REQUIRED)
    message(FATAL_ERROR "frugal: ${FrugalArrow_FAULT}")
  elseif(NOT FrugalArrow_FIND_QUIETLY OR FRUGAL_ARROW STREQUAL "ON" OR FRUGAL_PYARROW)
    message(STATUS "frugal: ${FrugalArrow_FAULT}")
  endif()
else()
  set(FrugalArrow_FOUND TRUE)
  message(STATUS "frugal: Arrow ${FrugalArrow_VERSION} in ${FrugalArrow_ROOT} (${FrugalArrow_ORIGIN})")
endif()
