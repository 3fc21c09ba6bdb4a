# SPDX-License-Identifier: Apache-2.0
# Install rules: the headers, and a CMake package that gives frugal::frugal.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(frugal_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/frugal")
# What find_package(frugal) falls back to; a package that is moved elsewhere is built with
# FRUGAL_WITH_TORCH=OFF and has none.
set(FRUGAL_INSTALLED_TORCH_HINT "${FrugalTorch_ROOT}")

install(TARGETS frugal frugal_headers EXPORT frugalTargets)
install(DIRECTORY include/frugal DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp")
install(EXPORT frugalTargets NAMESPACE frugal:: DESTINATION "${frugal_package_dir}")
configure_package_config_file(cmake/frugalConfig.cmake.in
  "${PROJECT_BINARY_DIR}/frugalConfig.cmake" INSTALL_DESTINATION "${frugal_package_dir}")
# Nothing in the headers depends on the architecture.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/frugalConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  "${PROJECT_BINARY_DIR}/frugalConfig.cmake" "${PROJECT_BINARY_DIR}/frugalConfigVersion.cmake"
  cmake/FindFrugalTorch.cmake cmake/FrugalDependencies.cmake cmake/FrugalPrecompile.cmake
  DESTINATION "${frugal_package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/frugal")
