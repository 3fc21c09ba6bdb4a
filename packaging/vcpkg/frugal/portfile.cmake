# SPDX-License-Identifier: Apache-2.0
# An overlay port: packages the checkout that contains it.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(VCPKG_BUILD_TYPE release) # header-only

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        apply FRUGAL_APPLY
        archive FRUGAL_ARCHIVE
        arrow FRUGAL_ARROW
        avro FRUGAL_AVRO
        cluster FRUGAL_CLUSTER
        cuda FRUGAL_CUDA
        images FRUGAL_IMAGES
        notices FRUGAL_NOTICES
        prometheus FRUGAL_PROMETHEUS
        recipes FRUGAL_RECIPES
        step FRUGAL_STEP
        tensorboard FRUGAL_TENSORBOARD
        text FRUGAL_TEXT
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        # LibTorch is found when the package is used.
        -DFRUGAL_WITH_TORCH=OFF
        -DFRUGAL_BUILD_TESTS=OFF
        -DFRUGAL_BUILD_EXAMPLES=OFF
        -DFRUGAL_BUILD_BENCH=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/frugal)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/licenses")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
