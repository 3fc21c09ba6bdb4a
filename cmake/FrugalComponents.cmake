# SPDX-License-Identifier: Apache-2.0
# Optional components of frugal: parts that need a library which the others do not. Component x is the
# target frugal::x, for the option FRUGAL_X: ON demands it, AUTO takes it if its library is there, OFF
# leaves it out. `find_package(frugal COMPONENTS x)` asks for it, too.
#
# A component has a function here that finds its library, and three variables: the targets of the
# library, Debian's packages, and a pattern of the library's headers, by which frugal's own build knows
# the headers and programs that need it.

set(frugal_cmake_dir "${CMAKE_CURRENT_LIST_DIR}")
set(frugal_components apply archive arrow avro cluster images notices prometheus recipes step tensorboard text)

# Settings from the command line and from files: CLI11 is headers alone, toml++ reads files.
set(frugal_apply_targets CLI11::CLI11 tomlplusplus::tomlplusplus)
set(frugal_apply_packages libcli11-dev libtomlplusplus-dev)
set(frugal_apply_headers "(CLI|toml\\+\\+)/")
macro(frugal_find_apply)
  find_package(CLI11 2.1 QUIET)
  find_package(tomlplusplus 3.3 QUIET)
endmacro()

# Moving old checkpoints to cold storage, and tar shards.
set(frugal_archive_targets LibArchive::LibArchive)
set(frugal_archive_packages libarchive-dev)
set(frugal_archive_headers "archive(_entry)?\\.h>")
macro(frugal_find_archive)
  find_package(LibArchive 3.6 QUIET)
endmacro()

# Parquet, CSV and JSONL. Debian 12 has no Arrow: FindFrugalArrow.cmake takes that of a pyarrow as well.
set(frugal_arrow_targets FrugalArrow::arrow)
set(frugal_arrow_packages "pyarrow, from PyPI, or FRUGAL_PYARROW")
set(frugal_arrow_headers "(arrow|parquet)/")
macro(frugal_find_arrow)
  list(PREPEND CMAKE_MODULE_PATH "${frugal_cmake_dir}")
  find_package(FrugalArrow QUIET)
  list(POP_FRONT CMAKE_MODULE_PATH)
endmacro()

# Avro container files: libavro reads the schemas, libzstd one of the codecs.
set(frugal_avro_targets FrugalAvro::avro FrugalZstd::zstd)
set(frugal_avro_packages libavro-dev libzstd-dev)
set(frugal_avro_headers "(avro\\.h|avro/.*|zstd\\.h)>")
macro(frugal_find_avro)
  frugal_find_library(FrugalAvro::avro avro.h avro)
  frugal_find_library(FrugalZstd::zstd zstd.h zstd)
endmacro()

# Processes that train together: LibTorch's own, with the declarations of Gloo that its packages lack.
set(frugal_cluster_targets FrugalGloo::declarations)
set(frugal_cluster_packages "")
set(frugal_cluster_headers "torch/csrc/distributed/")
macro(frugal_find_cluster)
  if(NOT TARGET FrugalGloo::declarations)
    add_library(FrugalGloo::declarations INTERFACE IMPORTED GLOBAL)
    target_include_directories(FrugalGloo::declarations SYSTEM INTERFACE "${frugal_cmake_dir}/gloo")
  endif()
endmacro()

# JPEG and PNG files.
set(frugal_images_targets JPEG::JPEG PNG::PNG)
set(frugal_images_packages libjpeg62-turbo-dev libpng-dev)
set(frugal_images_headers "(jpeglib|jerror|png)\\.h>")
macro(frugal_find_images)
  find_package(JPEG QUIET)
  find_package(PNG QUIET)
endmacro()

# Preemption notices of clouds, webhooks, MLflow.
set(frugal_notices_targets CURL::libcurl)
set(frugal_notices_packages libcurl4-openssl-dev)
set(frugal_notices_headers "curl/")
macro(frugal_find_notices)
  find_package(CURL 7.87 QUIET)
endmacro()

# TensorBoard's event files: Protozero and Boost.CRC are headers alone, libpng encodes images.
set(frugal_tensorboard_targets FrugalProtozero::protozero FrugalBoost::crc PNG::PNG)
set(frugal_tensorboard_packages libprotozero-dev libboost-dev libpng-dev)
set(frugal_tensorboard_headers "(protozero/.*\\.hpp|boost/crc\\.hpp|png\\.h)>")
macro(frugal_find_tensorboard)
  frugal_find_library(FrugalProtozero::protozero protozero/pbf_writer.hpp)
  frugal_find_library(FrugalBoost::crc boost/crc.hpp)
  find_package(PNG QUIET)
endmacro()

# Metrics over HTTP, for Prometheus. Debian's CMake package also demands what the push gateway needs, which
# is not used here.
set(frugal_prometheus_targets FrugalPrometheus::pull)
set(frugal_prometheus_packages prometheus-cpp-dev)
set(frugal_prometheus_headers "prometheus/")
macro(frugal_find_prometheus)
  frugal_find_library(FrugalPrometheus::pull prometheus/exposer.h
    prometheus-cpp-pull prometheus-cpp-core)
endmacro()

# Products of recipes, and comparing them: Boost.Hana is headers alone.
set(frugal_recipes_targets FrugalBoost::hana)
set(frugal_recipes_packages libboost-dev)
set(frugal_recipes_headers "boost/hana/")
macro(frugal_find_recipes)
  frugal_find_library(FrugalBoost::hana boost/hana/tuple.hpp)
endmacro()

# Compiled steps: LibTorch runs what AOTInductor has compiled.
set(frugal_step_targets "")
set(frugal_step_packages "")
set(frugal_step_headers "torch/csrc/inductor/")
macro(frugal_find_step)
endmacro()

# Vocabularies: byte-pair and unigram by SentencePiece, WordPiece with the tables of utf8proc.
set(frugal_text_targets FrugalSentencePiece::sentencepiece FrugalUtf8proc::utf8proc)
set(frugal_text_packages libsentencepiece-dev libutf8proc-dev)
set(frugal_text_headers "(sentencepiece_processor|sentencepiece_trainer|utf8proc)\\.h>")
macro(frugal_find_text)
  frugal_find_library(FrugalSentencePiece::sentencepiece sentencepiece_processor.h
    sentencepiece sentencepiece_train)
  frugal_find_library(FrugalUtf8proc::utf8proc utf8proc.h utf8proc)
endmacro()

# frugal_find_library(<target> <header> <library>...): an imported target of a library that brings no
# CMake package, unless it exists.
function(frugal_find_library target header)
  if(TARGET ${target})
    return()
  endif()
  find_path(_frugal_include ${header} NO_CACHE)
  set(files "")
  foreach(library IN LISTS ARGN)
    unset(_frugal_file)
    find_library(_frugal_file ${library} NO_CACHE)
    if(NOT _frugal_file)
      return()
    endif()
    list(APPEND files "${_frugal_file}")
  endforeach()
  if(_frugal_include)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} SYSTEM INTERFACE "${_frugal_include}")
    target_link_libraries(${target} INTERFACE ${files})
  endif()
endfunction()

# frugal_find_components(): finds the libraries of all components that are ON or AUTO; sets FRUGAL_X of
# an AUTO one to ON or OFF, and appends to _frugal_missing the packages of those that must be there.
macro(frugal_find_components)
  foreach(_frugal_component IN LISTS frugal_components)
    string(TOUPPER "${_frugal_component}" _frugal_option)
    set(_frugal_option FRUGAL_${_frugal_option})
    if(${_frugal_option})  # AUTO is true as well
      cmake_language(CALL frugal_find_${_frugal_component})
      set(_frugal_has ON)
      foreach(_frugal_target IN LISTS frugal_${_frugal_component}_targets)
        if(NOT TARGET ${_frugal_target})
          set(_frugal_has OFF)
        endif()
      endforeach()
      if(${_frugal_option} STREQUAL "AUTO")
        set(${_frugal_option} ${_frugal_has})
        if(NOT _frugal_has)
          list(JOIN frugal_${_frugal_component}_packages " " _frugal_packages)
          message(VERBOSE "frugal: without the component ${_frugal_component}: ${_frugal_packages}")
        endif()
      elseif(NOT _frugal_has)
        list(APPEND _frugal_missing ${frugal_${_frugal_component}_packages})
      endif()
    endif()
  endforeach()
endmacro()

# frugal_add_components(): the targets frugal::x. Not exported, so that an installed frugal gives those
# that are asked for, however it was installed.
macro(frugal_add_components)
  foreach(_frugal_component IN LISTS frugal_components)
    string(TOUPPER "${_frugal_component}" _frugal_option)
    if(FRUGAL_${_frugal_option} AND NOT TARGET frugal::${_frugal_component})
      add_library(frugal::${_frugal_component} INTERFACE IMPORTED GLOBAL)
      target_link_libraries(frugal::${_frugal_component} INTERFACE frugal::headers
        ${frugal_${_frugal_component}_targets})
    endif()
  endforeach()
endmacro()

# frugal_needs(<variable> <file>): the components that a program names on its first lines, e.g.
# `// needs: archive images`; the others of its words (torch) are no components.
function(frugal_needs variable file)
  file(STRINGS "${file}" head LIMIT_COUNT 5)
  set(needs "")
  if(head MATCHES "// needs: ([a-z ]+)")
    string(REPLACE " " ";" words "${CMAKE_MATCH_1}")
    foreach(word IN LISTS words)
      if(word IN_LIST frugal_components)
        list(APPEND needs ${word})
      endif()
    endforeach()
  endif()
  set(${variable} "${needs}" PARENT_SCOPE)
endfunction()

# frugal_at_hand(<variable> <component>...): whether all of them are there.
function(frugal_at_hand variable)
  set(${variable} TRUE PARENT_SCOPE)
  foreach(component IN LISTS ARGN)
    if(NOT TARGET frugal::${component})
      set(${variable} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
