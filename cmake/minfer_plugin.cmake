# minfer_add_plugin(KIND backend|arch NAME x SOURCES a.cpp ... [VERSION 1.2.0] [PRIORITY 100] [DEPS target ...] [FOLDER dir])
#
# Builds minfer-KIND-NAME.so and its manifest into bin/plugins, and adds a test that exactly one symbol is exported. Needs nothing
# of minfer but the ABI and SDK headers. Sources get MINFER_PLUGIN_NAME and MINFER_PLUGIN_VERSION as string literals, so that
# descriptor and manifest cannot differ. The target is named minfer-KIND-NAME. With FOLDER it is built there and not installed.
include(CheckCXXCompilerFlag)

set(MINFER_PLUGIN_HEADERS "${CMAKE_CURRENT_LIST_DIR}/../core/include" CACHE PATH "Folder that holds minfer/abi and minfer/plugin")
set(MINFER_PLUGIN_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}")

# The hash of the ABI headers: a plugin and a host built from the same headers agree on it. Written to minfer/abi/abi_hash.h in
# the build tree, and computed again when a header changes.
function(minfer_abi_hash)
  file(GLOB headers CONFIGURE_DEPENDS "${MINFER_PLUGIN_HEADERS}/minfer/abi/*.h")
  list(SORT headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(all "")
  foreach(header IN LISTS headers)
    get_filename_component(name "${header}" NAME)
    file(SHA256 "${header}" hash)
    string(APPEND all "${name} ${hash}\n")
  endforeach()
  string(SHA256 MI_ABI_HASH "${all}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/minfer/abi/abi_hash.h" CONTENT
"/* Generated: SHA-256 over the names and SHA-256 sums of the ABI headers. */
#ifndef MINFER_ABI_ABI_HASH_H_
#define MINFER_ABI_ABI_HASH_H_

#define MI_ABI_HASH \"@MI_ABI_HASH@\"

#endif
" @ONLY)
  set(MINFER_ABI_HASH "${MI_ABI_HASH}" PARENT_SCOPE)
  set(MINFER_ABI_HASH_DIR "${PROJECT_BINARY_DIR}/include" PARENT_SCOPE)
  file(READ "${MINFER_PLUGIN_HEADERS}/minfer/abi/base.h" base)
  string(REGEX MATCH "MI_ABI_MAJOR ([0-9]+)" unused "${base}")
  set(major "${CMAKE_MATCH_1}")
  string(REGEX MATCH "MI_ABI_MINOR ([0-9]+)" unused "${base}")
  set(MINFER_ABI_VERSION "${major}.${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
minfer_abi_hash()

string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" MINFER_PLUGIN_PLATFORM)
check_cxx_compiler_flag(-fno-gnu-unique MINFER_HAS_NO_GNU_UNIQUE)

# Hidden symbols and a version script: two plugins in one process never share code or statics, templates of the C++ library included.
# -z defs and -z now: an undefined symbol is found when building or loading, not in the middle of a run.
add_library(minfer_plugin_flags INTERFACE)
target_include_directories(minfer_plugin_flags INTERFACE "${MINFER_PLUGIN_HEADERS}" "${MINFER_ABI_HASH_DIR}")
target_compile_options(minfer_plugin_flags INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${MINFER_HAS_NO_GNU_UNIQUE}>>:-fno-gnu-unique>)
target_link_options(minfer_plugin_flags INTERFACE -Wl,--exclude-libs,ALL -Wl,-z,now
  "-Wl,--version-script=${MINFER_PLUGIN_SCRIPTS}/minfer_plugin.map")
if(NOT MINFER_SANITIZE)  # the sanitizers' own symbols are found in the program
  target_link_options(minfer_plugin_flags INTERFACE -Wl,-z,defs)
endif()
if(TARGET minfer_flags)
  target_link_libraries(minfer_plugin_flags INTERFACE minfer_flags)
endif()

function(minfer_add_plugin)
  cmake_parse_arguments(ARG "" "KIND;NAME;VERSION;PRIORITY;FOLDER" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_KIND MATCHES "^(backend|arch)$" OR NOT ARG_NAME MATCHES "^[a-z0-9_]+$" OR NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "minfer_add_plugin: needs KIND backend|arch, NAME [a-z0-9_]+, SOURCES; got: ${ARGN}")
  endif()
  if(NOT ARG_VERSION)
    set(ARG_VERSION "${PROJECT_VERSION}")
  endif()
  if(NOT DEFINED ARG_PRIORITY)
    set(ARG_PRIORITY 100)
  endif()
  set(target "minfer-${ARG_KIND}-${ARG_NAME}")
  set(folder "${CMAKE_BINARY_DIR}/bin/plugins")
  if(ARG_FOLDER)
    set(folder "${ARG_FOLDER}")
  endif()

  add_library(${target} MODULE ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY "${folder}"
    CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_definitions(${target} PRIVATE
    MINFER_PLUGIN_NAME="${ARG_NAME}" MINFER_PLUGIN_VERSION="${ARG_VERSION}"
    MINFER_PLUGIN_BUILD="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE}")
  target_link_libraries(${target} PRIVATE minfer_plugin_flags ${ARG_DEPS})

  file(CONFIGURE OUTPUT "${folder}/${target}.plugin.yaml" CONTENT
"kind: @ARG_KIND@
name: \"@ARG_NAME@\"
version: \"@ARG_VERSION@\"
library: @target@.so
abi: \"@MINFER_ABI_VERSION@\"
abi_hash: \"@MINFER_ABI_HASH@\"
platform: @MINFER_PLUGIN_PLATFORM@
priority: @ARG_PRIORITY@
" @ONLY)

  if(MINFER_BUILD_TESTS AND NOT MINFER_SANITIZE)  # a sanitizer exports symbols of its own
    add_test(NAME "plugin: ${target} exports exactly one symbol"
      COMMAND "${CMAKE_COMMAND}" -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:${target}> -P "${MINFER_PLUGIN_SCRIPTS}/check_exports.cmake")
  endif()
  if(ARG_FOLDER)
    return()
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/minfer/plugins)
  install(FILES "${folder}/${target}.plugin.yaml" DESTINATION lib/minfer/plugins)
endfunction()
