# SPDX-License-Identifier: Apache-2.0
# frugal_precompile(<target> [<target>...]): a precompiled header of torch/torch.h and
# frugal/frugal.hpp for programs that use frugal, made once for all targets named together. They
# must be compiled with the same flags and definitions.
function(frugal_precompile)
  if(NOT ARGN)
    message(FATAL_ERROR "frugal: frugal_precompile() is given no target. "
      "Write frugal_precompile(main) behind add_executable(main ...).")
  endif()
  set(first "")
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "frugal: frugal_precompile(${target}) names no target. "
        "Call it behind add_executable(${target} ...) or add_library(${target} ...).")
    endif()
    if(first)
      target_precompile_headers(${target} REUSE_FROM ${first})
    else()
      set(first ${target})
      target_precompile_headers(${target} PRIVATE <torch/torch.h> <frugal/frugal.hpp>)
    endif()
  endforeach()
endfunction()
