# SPDX-License-Identifier: Apache-2.0
# Checks the port without vcpkg: cmake -DOUT=<folder> -P check.cmake
#
# It checks the manifest against vcpkg's rules for the fields that it uses, and runs the real
# portfile with stand-ins for the vcpkg_* functions that do what their documentation says: a real
# configure and a real install, with the CMake package moved to share/. Afterwards
# <folder>/packages/frugal contains what vcpkg would install. packaging/README.md says what this
# does not test.
cmake_minimum_required(VERSION 3.25)

set(port_dir "${CMAKE_CURRENT_LIST_DIR}/frugal")
if(NOT OUT)
  message(FATAL_ERROR "give a folder: cmake -DOUT=<folder> -P check.cmake")
endif()
file(REMOVE_RECURSE "${OUT}")

# ---- the manifest -------------------------------------------------------------------------------

file(READ "${port_dir}/vcpkg.json" manifest)
set(known name version description license supports dependencies features)
string(JSON fields LENGTH "${manifest}")
math(EXPR last "${fields} - 1")
foreach(i RANGE ${last})
  string(JSON field MEMBER "${manifest}" ${i})
  if(NOT field IN_LIST known)
    message(FATAL_ERROR "vcpkg.json has a field that vcpkg does not know: ${field}")
  endif()
endforeach()

string(JSON name GET "${manifest}" name)
string(JSON version GET "${manifest}" version)
file(STRINGS "${port_dir}/../../../include/frugal/version.hpp" of_header
  REGEX "string_view version = \"${version}\"")
if(NOT of_header)
  message(FATAL_ERROR "vcpkg.json says ${version}, and include/frugal/version.hpp does not")
endif()
string(JSON dependencies GET "${manifest}" dependencies)
string(JSON count LENGTH "${dependencies}")
math(EXPR last "${count} - 1")
set(names "${name}")
set(previous "")
foreach(i RANGE ${last})
  string(JSON type TYPE "${dependencies}" ${i})
  if(type STREQUAL "OBJECT")
    string(JSON dependency GET "${dependencies}" ${i} name)
  else()
    string(JSON dependency GET "${dependencies}" ${i})
  endif()
  if(NOT previous STRLESS dependency)
    message(FATAL_ERROR "vcpkg format-manifest would put ${dependency} before ${previous}")
  endif()
  set(previous "${dependency}")
  list(APPEND names "${dependency}")
endforeach()
string(JSON features GET "${manifest}" features)
string(JSON count LENGTH "${features}")
math(EXPR last "${count} - 1")
set(feature_names "")
foreach(i RANGE ${last})
  string(JSON feature MEMBER "${features}" ${i})
  string(JSON description GET "${features}" "${feature}" description)
  list(APPEND feature_names "${feature}")
endforeach()
foreach(identifier IN LISTS names feature_names)
  if(NOT identifier MATCHES "^[a-z0-9]+(-[a-z0-9]+)*$")
    message(FATAL_ERROR "vcpkg takes no name like ${identifier}")
  endif()
endforeach()

# ---- stand-ins for vcpkg's functions ------------------------------------------------------------

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(options "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    if(NOT feature IN_LIST feature_names)
      message(FATAL_ERROR "the portfile asks for a feature that vcpkg.json has not: ${feature}")
    endif()
    if(feature IN_LIST FEATURES)
      list(APPEND options "-D${option}=ON")
    else()
      list(APPEND options "-D${option}=OFF")
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}" -G Ninja
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}"
    -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${CURRENT_BUILDTREES_DIR}")
  run("${CMAKE_COMMAND}" --install "${CURRENT_BUILDTREES_DIR}")
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  set(share "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/share")
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${share}")
  # One folder fewer between the files and the prefix.
  file(READ "${share}/${PORT}Config.cmake" text)
  string(REPLACE "/../../../\" ABSOLUTE" "/../../\" ABSOLUTE" fixed "${text}")
  if(fixed STREQUAL text)
    message(FATAL_ERROR "the config has no prefix that could be fixed up")
  endif()
  file(WRITE "${share}/${PORT}Config.cmake" "${fixed}")
  file(READ "${share}/${PORT}Targets.cmake" text)
  string(REGEX REPLACE
    "get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))+"
    "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)"
    fixed "${text}")
  file(WRITE "${share}/${PORT}Targets.cmake" "${fixed}")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

# ---- the portfile, with no feature and with all of them -----------------------------------------

function(port_in folder)
  set(PORT "${name}")
  set(FEATURES core ${ARGN})
  set(CURRENT_PORT_DIR "${port_dir}")
  set(CURRENT_BUILDTREES_DIR "${OUT}/buildtrees/${folder}")
  set(CURRENT_PACKAGES_DIR "${OUT}/packages/${folder}")
  include("${port_dir}/portfile.cmake")

  # Conditions that vcpkg checks after a build.
  foreach(file IN ITEMS share/frugal/copyright share/frugal/usage share/frugal/frugalConfig.cmake
                        include/frugal/version.hpp)
    if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
      message(FATAL_ERROR "the port does not install ${file}")
    endif()
  endforeach()
  foreach(folder IN ITEMS lib debug bin)
    if(EXISTS "${CURRENT_PACKAGES_DIR}/${folder}")
      message(FATAL_ERROR "a header-only port must not have ${folder}/")
    endif()
  endforeach()
  file(GLOB_RECURSE installed "${CURRENT_PACKAGES_DIR}/share/*.cmake")
  foreach(file IN LISTS installed)
    file(READ "${file}" text)
    foreach(path IN ITEMS "${CURRENT_PACKAGES_DIR}" "${CURRENT_BUILDTREES_DIR}" "${SOURCE_PATH}")
      string(FIND "${text}" "${path}" position)
      if(NOT position EQUAL -1)
        message(FATAL_ERROR "${file} names an absolute path: ${path}")
      endif()
    endforeach()
  endforeach()
endfunction()

port_in(frugal)
port_in(frugal-all ${feature_names})
file(READ "${OUT}/packages/frugal-all/share/frugal/frugalConfig.cmake" text)
foreach(feature IN LISTS feature_names)
  string(TOUPPER "${feature}" option)
  if(NOT text MATCHES "set\\(FRUGAL_${option} ON\\)")
    message(FATAL_ERROR "the feature ${feature} does not reach the installed package")
  endif()
endforeach()
message(STATUS "the port is sound")
