# SPDX-License-Identifier: Apache-2.0
# frugal's dependencies, found the same way by its own build and by find_package(frugal). LibTorch
# only with FRUGAL_WITH_TORCH, and the libraries of FrugalComponents.cmake only with their options.
include("${CMAKE_CURRENT_LIST_DIR}/FrugalComponents.cmake")

find_package(ZLIB QUIET)
find_package(Threads QUIET)

# xxHash: vcpkg and Conan provide a CMake package, Debian a header and a library.
if(NOT TARGET xxHash::xxhash)
  find_package(xxHash CONFIG QUIET)
endif()
if(NOT TARGET xxHash::xxhash)
  find_path(_frugal_xxhash_include xxhash.h NO_CACHE)
  find_library(_frugal_xxhash_library xxhash NO_CACHE)
  if(_frugal_xxhash_include AND _frugal_xxhash_library)
    add_library(xxHash::xxhash UNKNOWN IMPORTED GLOBAL)
    set_target_properties(xxHash::xxhash PROPERTIES
      IMPORTED_LOCATION "${_frugal_xxhash_library}"
      INTERFACE_INCLUDE_DIRECTORIES "${_frugal_xxhash_include}")
  endif()
  unset(_frugal_xxhash_include)
  unset(_frugal_xxhash_library)
endif()

# RapidJSON: vcpkg and Conan provide a target, Debian headers.
if(NOT TARGET rapidjson)
  find_package(RapidJSON CONFIG QUIET)
endif()
if(NOT TARGET rapidjson)
  find_path(_frugal_rapidjson_include rapidjson/reader.h NO_CACHE)
  if(_frugal_rapidjson_include)
    add_library(rapidjson INTERFACE IMPORTED GLOBAL)
    set_target_properties(rapidjson PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_frugal_rapidjson_include}")
  endif()
  unset(_frugal_rapidjson_include)
endif()

set(_frugal_pairs "rapidjson|rapidjson-dev"
  "ZLIB::ZLIB|zlib1g-dev" "xxHash::xxhash|libxxhash-dev" "Threads::Threads|libc6-dev")

set(_frugal_missing "")
foreach(_frugal_pair IN LISTS _frugal_pairs)
  string(REPLACE "|" ";" _frugal_pair "${_frugal_pair}")
  list(GET _frugal_pair 0 _frugal_target)
  list(GET _frugal_pair 1 _frugal_package)
  if(NOT TARGET ${_frugal_target})
    list(APPEND _frugal_missing ${_frugal_package})
  endif()
endforeach()
frugal_find_components()

set(FrugalDependencies_FAULT "")
if(_frugal_missing)
  list(JOIN _frugal_missing " " _frugal_missing)
  set(FrugalDependencies_FAULT
    "libraries are missing. On Debian: apt-get install ${_frugal_missing}")
elseif(FRUGAL_WITH_TORCH)
  list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
  find_package(FrugalTorch QUIET)
  list(POP_FRONT CMAKE_MODULE_PATH)
  if(FrugalTorch_FOUND)
    message(STATUS "frugal: LibTorch ${FrugalTorch_VERSION} in ${FrugalTorch_ROOT} (${FrugalTorch_ORIGIN})")
  else()
    set(FrugalDependencies_FAULT "${FrugalTorch_NOT_FOUND_MESSAGE}")
  endif()
endif()

if(NOT FrugalDependencies_FAULT)
  frugal_add_components()
endif()
