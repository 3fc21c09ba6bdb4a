# SPDX-License-Identifier: Apache-2.0
# Install rules: the headers, and a CMake package that provides frugal::frugal.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(frugal_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/frugal")
# The fallback of find_package(frugal). A relocatable package is built with FRUGAL_WITH_TORCH=OFF
# and has none, or contains a copy, which moves with it.
set(FRUGAL_INSTALLED_TORCH_HINT "${FrugalTorch_ROOT}")
if(FRUGAL_INSTALL_LIBTORCH AND FRUGAL_WITH_TORCH)
  set(_frugal_copy "${CMAKE_INSTALL_LIBDIR}/frugal")
  set(FRUGAL_INSTALLED_TORCH_HINT "\${PACKAGE_PREFIX_DIR}/${_frugal_copy}/torch")
  install(DIRECTORY "${FrugalTorch_ROOT}/include" DESTINATION "${_frugal_copy}/torch")
  set(_frugal_left_out PATTERN "libtorch_python*" EXCLUDE PATTERN "libshm*" EXCLUDE)
  set(_frugal_nvidia PATTERN "libcudart*" PATTERN "libcupti*")  # libtorch_cpu links to these two
  if(FRUGAL_CUDA)
    set(_frugal_nvidia PATTERN "*")
  else()
    list(APPEND _frugal_left_out PATTERN "lib*_cuda*" EXCLUDE PATTERN "libtorch_nvshmem*" EXCLUDE
      PATTERN "libcaffe2_nvrtc*" EXCLUDE)
  endif()
  install(DIRECTORY "${FrugalTorch_ROOT}/lib" DESTINATION "${_frugal_copy}/torch"
    USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN "*.so*" ${_frugal_left_out})
  # The wheels next to torch, where libtorch_cpu looks for them ($ORIGIN/../../nvidia).
  if(IS_DIRECTORY "${FrugalTorch_ROOT}/../nvidia")
    install(DIRECTORY "${FrugalTorch_ROOT}/../nvidia" DESTINATION "${_frugal_copy}"
      USE_SOURCE_PERMISSIONS FILES_MATCHING ${_frugal_nvidia})
  endif()
  file(GLOB _frugal_licences "${FrugalTorch_ROOT}/../torch-*.dist-info/licenses"
    "${FrugalTorch_ROOT}/../torch-*.dist-info/LICENSE")
  foreach(_frugal_licence IN LISTS _frugal_licences)
    if(IS_DIRECTORY "${_frugal_licence}")
      string(APPEND _frugal_licence "/")
      install(DIRECTORY "${_frugal_licence}" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/libtorch")
    else()
      install(FILES "${_frugal_licence}" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/libtorch")
    endif()
  endforeach()
endif()

install(TARGETS frugal frugal_headers EXPORT frugalTargets)
install(DIRECTORY include/frugal DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.ipp")
install(EXPORT frugalTargets NAMESPACE frugal:: DESTINATION "${frugal_package_dir}")
# The components that an installed frugal gives unasked: those that it was configured with, unless it
# found them by itself.
set(FRUGAL_COMPONENT_DEFAULTS "")
foreach(component IN LISTS frugal_components)
  string(TOUPPER "${component}" frugal_option)
  set(frugal_given "$CACHE{FRUGAL_${frugal_option}}")
  if(NOT frugal_given OR frugal_given STREQUAL "AUTO")
    set(frugal_given OFF)
  else()
    set(frugal_given ON)
  endif()
  string(APPEND FRUGAL_COMPONENT_DEFAULTS "if(NOT DEFINED FRUGAL_${frugal_option})\n"
    "  set(FRUGAL_${frugal_option} ${frugal_given})\nendif()\n")
endforeach()
configure_package_config_file(cmake/frugalConfig.cmake.in
  "${PROJECT_BINARY_DIR}/frugalConfig.cmake" INSTALL_DESTINATION "${frugal_package_dir}")
# The headers do not depend on the architecture.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/frugalConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
file(GLOB frugal_find_modules "${PROJECT_SOURCE_DIR}/cmake/Find*.cmake")
install(FILES
  "${PROJECT_BINARY_DIR}/frugalConfig.cmake" "${PROJECT_BINARY_DIR}/frugalConfigVersion.cmake"
  ${frugal_find_modules} cmake/FrugalComponents.cmake cmake/FrugalDependencies.cmake
  cmake/FrugalCompiled.cmake cmake/FrugalPrecompile.cmake
  DESTINATION "${frugal_package_dir}")
install(DIRECTORY cmake/gloo DESTINATION "${frugal_package_dir}" FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/frugal")

# The examples are at hand by now, if they are built.
if(FRUGAL_INSTALL_PROGRAMS)
  set(frugal_programs frugal_doctor frugal_pack frugal_plan frugal_report)
  foreach(program IN LISTS frugal_programs)
    if(NOT TARGET ${program})
      message(FATAL_ERROR "frugal: FRUGAL_INSTALL_PROGRAMS installs ${program} as well, which is built with \
FRUGAL_BUILD_EXAMPLES=ON, CLI11 and FRUGAL_ARCHIVE=ON.")
    endif()
  endforeach()
  install(TARGETS ${frugal_programs} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
