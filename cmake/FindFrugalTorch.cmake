# SPDX-License-Identifier: Apache-2.0
# Finds LibTorch and provides it as the imported target `frugal::torch`.
#
# Search order; the first that exists is used:
#   1. what the user names: FRUGAL_LIBTORCH (CMake variable or environment), Torch_DIR, or a
#      find_package(Torch) that the project already did. FRUGAL_LIBTORCH may be an official
#      LibTorch folder, the folder of a Python torch, a site-packages folder that holds one, or a
#      folder with TorchConfig.cmake; or the first folder of CMAKE_PREFIX_PATH that has LibTorch;
#   2. the torch that python3 would import (it is located, never imported: that takes seconds);
#   3. FRUGAL_TORCH_HINTS: the pinned wheel that ./dev brings, or what an installed frugal was
#      built with.
#
# Does not use LibTorch's own TorchConfig.cmake: for a wheel built with CUDA it requires nvcc and a
# CUDA toolkit, even for a program that only runs on the CPU.
#
# FRUGAL_CUDA=OFF links libtorch_cpu and libc10, whatever the wheel was built with. FRUGAL_CUDA=ON
# adds libtorch_cuda, libc10_cuda, the CUDA run-time, NCCL and their headers, from the nvidia wheels
# next to torch or from a CUDA toolkit. Linking needs no GPU and no nvcc.
#
# FRUGAL_CLANG_ABI is the version of clang whose symbols programs compiled by clang 18 or later use:
# 17, which agrees with GCC. OFF, for a LibTorch that such a clang has built, leaves the flag out.
#
# Result: FrugalTorch_FOUND, FrugalTorch_VERSION, FrugalTorch_ROOT, FrugalTorch_ORIGIN.

set(_frugal_torch_oldest 2.9)

# Sets `out` to the folder that contains include/ and lib/, or to nothing.
function(_frugal_torch_root out path)
  set(${out} "" PARENT_SCOPE)
  if(NOT path)
    return()
  endif()
  get_filename_component(path "${path}" ABSOLUTE)
  foreach(candidate "${path}" "${path}/torch" "${path}/libtorch" "${path}/../../..")
    if(EXISTS "${candidate}/include/ATen/ATen.h")
      get_filename_component(candidate "${candidate}" REALPATH)
      set(${out} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(_frugal_torch_version out root)
  set(${out} "" PARENT_SCOPE)
  # 2.10 moved the version numbers; since then torch/version.h only includes the new header.
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h torch/version.h)
    if(EXISTS "${root}/include/${header}")
      file(READ "${root}/include/${header}" text)
      set(version "")
      foreach(part MAJOR MINOR PATCH)
        if(text MATCHES "define TORCH_VERSION_${part} ([0-9]+)")
          list(APPEND version ${CMAKE_MATCH_1})
        endif()
      endforeach()
      list(LENGTH version parts)
      if(parts EQUAL 3)
        list(JOIN version "." version)
        set(${out} "${version}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

# Where python3 would import torch from. Without FRUGAL_PYTHON it is the python3 in the PATH, so
# that an activated virtual environment counts.
function(_frugal_torch_of_python out)
  set(${out} "" PARENT_SCOPE)
  set(names python3 python)
  if(FRUGAL_PYTHON)
    set(names "${FRUGAL_PYTHON}")
  endif()
  find_program(_frugal_python NAMES ${names} NO_CACHE)
  if(_frugal_python)
    execute_process(
      COMMAND "${_frugal_python}" -c "import importlib.util as u
s = u.find_spec('torch')
print(s.submodule_search_locations[0] if s and s.submodule_search_locations else '')"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    _frugal_torch_root(found "${found}")
    set(${out} "${found}" PARENT_SCOPE)
  endif()
endfunction()

function(_frugal_torch_find)
  set(ways "")
  if(FRUGAL_LIBTORCH)
    set(named "FRUGAL_LIBTORCH" "${FRUGAL_LIBTORCH}")
  elseif(NOT "$ENV{FRUGAL_LIBTORCH}" STREQUAL "")
    set(named "FRUGAL_LIBTORCH (environment)" "$ENV{FRUGAL_LIBTORCH}")
    # A later configure, perhaps by an editor or a build tool, has another environment.
    set(FRUGAL_LIBTORCH "$ENV{FRUGAL_LIBTORCH}" CACHE PATH "LibTorch to use")
  elseif(TORCH_INSTALL_PREFIX)
    set(named "find_package(Torch)" "${TORCH_INSTALL_PREFIX}")
  elseif(Torch_DIR)
    set(named "Torch_DIR" "${Torch_DIR}")
  elseif(NOT "$ENV{Torch_DIR}" STREQUAL "")
    set(named "Torch_DIR (environment)" "$ENV{Torch_DIR}")
  else()
    set(prefixes "$ENV{CMAKE_PREFIX_PATH}")
    string(REPLACE ":" ";" prefixes "${prefixes}")
    foreach(prefix IN LISTS CMAKE_PREFIX_PATH prefixes)
      foreach(candidate "${prefix}" "${prefix}/libtorch" "${prefix}/torch")
        if(NOT named AND EXISTS "${candidate}/include/ATen/ATen.h")
          set(named "CMAKE_PREFIX_PATH" "${candidate}")
        endif()
      endforeach()
    endforeach()
  endif()

  if(named)
    list(GET named 0 origin)
    list(GET named 1 path)
    _frugal_torch_root(root "${path}")
    if(NOT root)
      set(FrugalTorch_FAULT "${origin} names ${path}, where there is no include/ATen/ATen.h. \
Name a folder that holds LibTorch's include/ and lib/." PARENT_SCOPE)
      return()
    endif()
    _frugal_torch_version(version "${root}")
    if(NOT version OR version VERSION_LESS _frugal_torch_oldest)
      set(FrugalTorch_FAULT "${origin} names LibTorch ${version} in ${root}, and frugal needs \
${_frugal_torch_oldest} or later. Name a newer one, or none to let ./dev bring it." PARENT_SCOPE)
      return()
    endif()
  else()
    set(passed_over "")
    _frugal_torch_of_python(of_python)
    foreach(candidate IN LISTS of_python FRUGAL_TORCH_HINTS)
      _frugal_torch_root(root "${candidate}")
      _frugal_torch_version(version "${root}")
      if(version AND version VERSION_GREATER_EQUAL _frugal_torch_oldest)
        set(origin "what ./dev fetched, or frugal was installed with")
        if(of_python AND root STREQUAL of_python)
          set(origin "python3")
        endif()
        break()
      endif()
      if(version)
        string(APPEND passed_over " (${root} was passed over: ${version} is too old.)")
      endif()
      set(root "")
    endforeach()
    if(NOT root)
      set(FrugalTorch_FAULT "there is no LibTorch ${_frugal_torch_oldest} or later.${passed_over} \
Set FRUGAL_LIBTORCH to its folder, or `pip install torch`, or, in a checkout of frugal, run ./dev setup." PARENT_SCOPE)
      return()
    endif()
  endif()
  set(FrugalTorch_ROOT "${root}" PARENT_SCOPE)
  set(FrugalTorch_VERSION "${version}" PARENT_SCOPE)
  set(FrugalTorch_ORIGIN "${origin}" PARENT_SCOPE)
endfunction()

# The nvidia wheels next to torch, in either layout: nvidia/cu13/lib, or nvidia/cublas/lib and so
# on.
function(_frugal_torch_nvidia out sub root)
  file(GLOB folders LIST_DIRECTORIES true "${root}/../nvidia/*/${sub}")
  set(found "")
  foreach(folder IN LISTS folders)
    get_filename_component(folder "${folder}" REALPATH)
    list(APPEND found "${folder}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

function(_frugal_torch_add_cuda root)
  _frugal_torch_nvidia(lib_dirs lib "${root}")
  _frugal_torch_nvidia(include_dirs include "${root}")
  set(toolkit "${CUDAToolkit_ROOT}" "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda)
  find_program(_frugal_nvcc NAMES nvcc NO_CACHE HINTS ${toolkit} PATH_SUFFIXES bin)
  if(_frugal_nvcc)
    get_filename_component(_frugal_nvcc "${_frugal_nvcc}" REALPATH)
    get_filename_component(_frugal_nvcc "${_frugal_nvcc}/../.." ABSOLUTE)
    list(APPEND toolkit "${_frugal_nvcc}")
  endif()
  set(missing "")

  # The wheel with cuda_runtime_api.h includes crt/host_defines.h, which is in a separate wheel that
  # torch does not require: hence a toolkit's, if that wheel is missing.
  foreach(header cuda_runtime_api.h crt/host_defines.h cublas_v2.h nccl.h)
    find_path(_frugal_dir NAMES ${header} NO_CACHE
      HINTS ${include_dirs} ${toolkit} PATH_SUFFIXES include targets/x86_64-linux/include)
    if(_frugal_dir)
      list(APPEND include_dirs "${_frugal_dir}")
    else()
      list(APPEND missing ${header})
    endif()
    unset(_frugal_dir)
  endforeach()
  list(REMOVE_DUPLICATES include_dirs)

  set(libraries "")
  foreach(name libtorch_cuda.so libc10_cuda.so)
    if(EXISTS "${root}/lib/${name}")
      list(APPEND libraries "${root}/lib/${name}")
    else()
      list(APPEND missing ${name})
    endif()
  endforeach()
  foreach(name cudart nccl)
    # A wheel has only the versioned name: libnccl.so.2.
    file(GLOB versioned RELATIVE / "${root}/../nvidia/*/lib/lib${name}.so.[0-9]*")
    list(TRANSFORM versioned PREPEND /)
    if(versioned)
      list(GET versioned 0 library)
      get_filename_component(library "${library}" REALPATH)
    else()
      find_library(library NAMES ${name} NO_CACHE HINTS ${toolkit} PATH_SUFFIXES lib64 lib)
    endif()
    if(library)
      list(APPEND libraries "${library}")
      get_filename_component(dir "${library}" DIRECTORY)
      target_link_options(frugal::torch INTERFACE "LINKER:-rpath,${dir}")
    else()
      list(APPEND missing lib${name})
    endif()
    unset(library)
  endforeach()
  if(missing)
    list(JOIN missing ", " missing)
    set(FrugalTorch_FAULT "FRUGAL_CUDA=ON, and the LibTorch in ${root} comes without ${missing}. \
Install torch with all its dependencies, or set FRUGAL_CUDA=OFF." PARENT_SCOPE)
    return()
  endif()

  # The kernels of libtorch_cuda register themselves; no program needs to name one of its symbols.
  list(JOIN libraries "," joined)
  target_link_libraries(frugal::torch INTERFACE "-Wl,--no-as-needed,${joined},--as-needed")
  target_include_directories(frugal::torch SYSTEM INTERFACE ${include_dirs})
  target_compile_definitions(frugal::torch INTERFACE FRUGAL_CUDA=1 USE_CUDA=1 USE_C10D_NCCL=1)
endfunction()

function(_frugal_torch_target root)
  add_library(frugal::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(frugal::torch SYSTEM INTERFACE
    "${root}/include" "${root}/include/torch/csrc/api/include")
  target_compile_definitions(frugal::torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_compile_features(frugal::torch INTERFACE cxx_std_17)
  # GCC has built the wheels. Since version 18 clang gives templates with a constraint, such as
  # const_data_ptr<std::int64_t>(), another symbol than GCC does, and they would not be found.
  if(NOT DEFINED FRUGAL_CLANG_ABI)
    set(FRUGAL_CLANG_ABI 17)
  endif()
  if(FRUGAL_CLANG_ABI)
    string(CONCAT clang_18 "$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,"
      "$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,18>>")
    target_compile_options(frugal::torch INTERFACE
      "$<${clang_18}:-fclang-abi-compat=${FRUGAL_CLANG_ABI}>")
  endif()

  # The run path is a linker option rather than CMake's: CMake would remove it from an installed
  # program, which then finds no LibTorch. For the same reason there are no full paths to the
  # libraries, from which CMake would derive its own run path.
  target_link_directories(frugal::torch INTERFACE "${root}/lib")
  target_link_libraries(frugal::torch INTERFACE -ltorch_cpu -lc10)
  target_link_options(frugal::torch INTERFACE "LINKER:-rpath,${root}/lib")

  # libtorch_cpu of a CUDA wheel needs libcudart and libcupti. It finds them itself at run time; GNU
  # ld looks for them at link time and needs the path.
  _frugal_torch_nvidia(lib_dirs lib "${root}")
  foreach(dir IN LISTS lib_dirs)
    target_link_options(frugal::torch INTERFACE "LINKER:-rpath-link,${dir}")
  endforeach()

  if(FRUGAL_CUDA)
    _frugal_torch_add_cuda("${root}")
    set(FrugalTorch_FAULT "${FrugalTorch_FAULT}" PARENT_SCOPE)
  endif()
endfunction()

if(TARGET frugal::torch)
  set(FrugalTorch_FOUND TRUE)
  return()
endif()

unset(FrugalTorch_FAULT)
_frugal_torch_find()
if(NOT FrugalTorch_FAULT)
  foreach(_frugal_library libtorch_cpu.so libc10.so)
    if(NOT EXISTS "${FrugalTorch_ROOT}/lib/${_frugal_library}")
      set(FrugalTorch_FAULT "${FrugalTorch_ROOT} has no lib/${_frugal_library}. The LibTorch there is incomplete: unpack it again.")
    endif()
  endforeach()
endif()
if(NOT FrugalTorch_FAULT)
  _frugal_torch_target("${FrugalTorch_ROOT}")
endif()

if(FrugalTorch_FAULT)
  set(FrugalTorch_FOUND FALSE)
  set(FrugalTorch_NOT_FOUND_MESSAGE "${FrugalTorch_FAULT}")
  if(FrugalTorch_FIND_REQUIRED)
    message(FATAL_ERROR "frugal: ${FrugalTorch_FAULT}")
  endif()
else()
  set(FrugalTorch_FOUND TRUE)
  if(NOT FrugalTorch_FIND_QUIETLY)
    message(STATUS "frugal: LibTorch ${FrugalTorch_VERSION} in ${FrugalTorch_ROOT} (${FrugalTorch_ORIGIN})")
  endif()
endif()
