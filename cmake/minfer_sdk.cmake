# What plugin authors get, in this tree and installed: the generated header with the hash of the ABI, and the CMake package `minfer`
# (cmake/minferConfig.cmake.in) with minfer::sdk and minfer_add_plugin(). Sets MINFER_SDK_INCLUDE_DIRS and MINFER_ABI_HASH_DIR.
include(CMakePackageConfigHelpers)

# The hash of the ABI headers: a plugin and a host built from the same headers agree on it. Written to minfer/abi/abi_hash.h in
# the build tree, and computed again when a header changes.
function(minfer_write_abi_hash headers_dir out_dir)
  file(GLOB headers CONFIGURE_DEPENDS "${headers_dir}/minfer/abi/*.h")
  list(SORT headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(all "")
  foreach(header IN LISTS headers)
    get_filename_component(name "${header}" NAME)
    file(SHA256 "${header}" hash)
    string(APPEND all "${name} ${hash}\n")
  endforeach()
  string(SHA256 MI_ABI_HASH "${all}")
  file(CONFIGURE OUTPUT "${out_dir}/minfer/abi/abi_hash.h" CONTENT
"/* Generated: SHA-256 over the names and SHA-256 sums of the ABI headers. */
#ifndef MINFER_ABI_ABI_HASH_H_
#define MINFER_ABI_ABI_HASH_H_

#define MI_ABI_HASH \"@MI_ABI_HASH@\"

#endif
" @ONLY)
endfunction()

set(MINFER_ABI_HASH_DIR "${PROJECT_BINARY_DIR}/include")
set(MINFER_SDK_INCLUDE_DIRS "${PROJECT_SOURCE_DIR}/core/include" "${MINFER_ABI_HASH_DIR}")
minfer_write_abi_hash("${PROJECT_SOURCE_DIR}/core/include" "${MINFER_ABI_HASH_DIR}")

# Folders are fixed, not those of GNUInstallDirs: programs find lib/minfer/plugins beside them wherever the prefix is moved.
set(package_dir lib/cmake/minfer)
configure_package_config_file(cmake/minferConfig.cmake.in "${PROJECT_BINARY_DIR}/package/minferConfig.cmake"
  INSTALL_DESTINATION ${package_dir})
# Below 1.0 a minor version may change the SDK.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/minferConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/package/minferConfig.cmake" "${PROJECT_BINARY_DIR}/package/minferConfigVersion.cmake"
  cmake/minfer_plugin.cmake cmake/minfer_plugin.map cmake/check_exports.cmake
  DESTINATION ${package_dir})
install(DIRECTORY core/include/minfer/abi core/include/minfer/plugin DESTINATION include/minfer FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES core/include/minfer/runtime.hpp core/include/minfer/error.hpp DESTINATION include/minfer)
install(FILES "${MINFER_ABI_HASH_DIR}/minfer/abi/abi_hash.h" DESTINATION include/minfer/abi)
install(DIRECTORY configs/ DESTINATION share/minfer/configs)
install(FILES LICENSE README.md DESTINATION share/doc/minfer)
install(FILES examples/embed.cpp DESTINATION share/minfer/examples)
# Projects that build against the installation as they stand.
install(DIRECTORY tests/out_of_tree/adder tests/out_of_tree/adder_c tests/out_of_tree/tulip DESTINATION share/minfer/examples)
