# minfer_add_plugin(KIND backend|arch NAME x SOURCES a.cpp ... [VERSION 1.2.0] [PRIORITY 100] [DEPS target ...] [FOLDER dir])
#
# Builds minfer-KIND-NAME.so and its manifest into bin/plugins of the build folder, and installs both into lib/minfer/plugins; the
# target is named minfer-KIND-NAME. Sources (C++17 or C11) get MINFER_PLUGIN_NAME and MINFER_PLUGIN_VERSION as string literals, so that
# descriptor and manifest cannot differ. VERSION defaults to the project's. PRIORITY: for automatic choice, higher first; 0: only
# when named. DEPS are linked in. With FOLDER the plugin is built there and not installed. Where tests are enabled, one is added that
# exactly one symbol is exported.
#
# This file serves the tree of minfer and plugins elsewhere (find_package(minfer) includes it) alike. It needs the headers alone:
# MINFER_SDK_INCLUDE_DIRS, the folders that hold minfer/abi (with the generated abi_hash.h) and minfer/plugin.
get_property(MINFER_LANGUAGES GLOBAL PROPERTY ENABLED_LANGUAGES)
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" MINFER_PLUGIN_PLATFORM)

# minfer_read_define(OUT FILE NAME): the value of a macro, without quotes.
function(minfer_read_define out file name)
  find_file(header "${file}" PATHS ${MINFER_SDK_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE REQUIRED)
  file(STRINGS "${header}" line REGEX "^#define ${name} " LIMIT_COUNT 1)
  if(NOT line MATCHES "^#define ${name} \"?([^\" ]+)")
    message(FATAL_ERROR "minfer: ${header} does not define ${name}")
  endif()
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
minfer_read_define(MINFER_ABI_HASH minfer/abi/abi_hash.h MI_ABI_HASH)
minfer_read_define(MINFER_ABI_MAJOR minfer/abi/base.h MI_ABI_MAJOR)
minfer_read_define(MINFER_ABI_MINOR minfer/abi/base.h MI_ABI_MINOR)

if(NOT TARGET minfer_sdk)
  # The headers: for tests and libraries that a plugin is made of.
  add_library(minfer_sdk INTERFACE)
  target_include_directories(minfer_sdk INTERFACE ${MINFER_SDK_INCLUDE_DIRS})
  add_library(minfer::sdk ALIAS minfer_sdk)

  # Hidden symbols and a version script: two plugins in one process never share code or statics, templates of the C++ library included.
  # -z defs and -z now: an undefined symbol is found when building or loading, not in the middle of a run.
  # -ffp-contract=off: the compiler may not fuse a*b+c on its own, so results are those of the source.
  add_library(minfer_plugin_flags INTERFACE)
  target_link_libraries(minfer_plugin_flags INTERFACE minfer_sdk)
  target_compile_options(minfer_plugin_flags INTERFACE -fvisibility=hidden -ffp-contract=off
    $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
  target_link_options(minfer_plugin_flags INTERFACE -Wl,--exclude-libs,ALL -Wl,-z,now
    "-Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/minfer_plugin.map")
  if(NOT MINFER_SANITIZE)  # the sanitizers' own symbols are found in the program
    target_link_options(minfer_plugin_flags INTERFACE -Wl,-z,defs)
  endif()
  if("CXX" IN_LIST MINFER_LANGUAGES)
    include(CheckCXXCompilerFlag)
    check_cxx_compiler_flag(-fno-gnu-unique MINFER_HAS_NO_GNU_UNIQUE)
    if(MINFER_HAS_NO_GNU_UNIQUE)
      target_compile_options(minfer_plugin_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
    endif()
  endif()
  if(TARGET minfer_flags)
    target_link_libraries(minfer_plugin_flags INTERFACE minfer_flags)
  endif()
endif()

function(minfer_add_plugin)
  cmake_parse_arguments(ARG "" "KIND;NAME;VERSION;PRIORITY;FOLDER" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_KIND MATCHES "^(backend|arch)$" OR NOT ARG_NAME MATCHES "^[a-z0-9_]+$" OR NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "minfer_add_plugin: needs KIND backend|arch, NAME [a-z0-9_]+, SOURCES; got: ${ARGN}")
  endif()
  string(LENGTH "${ARG_NAME}" name_length)
  if(name_length GREATER 32)
    message(FATAL_ERROR "minfer_add_plugin: NAME ${ARG_NAME} has ${name_length} characters, at most 32 are allowed")
  endif()
  if(NOT ARG_VERSION)
    set(ARG_VERSION "${PROJECT_VERSION}")
  endif()
  if(NOT ARG_VERSION)
    message(FATAL_ERROR "minfer_add_plugin: give VERSION, or one in project(${PROJECT_NAME} VERSION 1.0.0)")
  endif()
  if(NOT DEFINED ARG_PRIORITY)
    set(ARG_PRIORITY 100)
  endif()
  set(target "minfer-${ARG_KIND}-${ARG_NAME}")
  set(folder "${CMAKE_BINARY_DIR}/bin/plugins")
  if(ARG_FOLDER)
    set(folder "${ARG_FOLDER}")
  endif()
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(NOT "CXX" IN_LIST MINFER_LANGUAGES)
    set(compiler "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
  endif()

  add_library(${target} MODULE ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY "${folder}"
    CXX_STANDARD_REQUIRED ON C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  if("CXX" IN_LIST MINFER_LANGUAGES)
    target_compile_features(${target} PRIVATE cxx_std_17)
  endif()
  if("C" IN_LIST MINFER_LANGUAGES)
    target_compile_features(${target} PRIVATE c_std_11)
  endif()
  target_compile_definitions(${target} PRIVATE
    MINFER_PLUGIN_NAME="${ARG_NAME}" MINFER_PLUGIN_VERSION="${ARG_VERSION}"
    MINFER_PLUGIN_BUILD="${compiler} ${CMAKE_BUILD_TYPE}")
  target_link_libraries(${target} PRIVATE minfer_plugin_flags ${ARG_DEPS})

  file(CONFIGURE OUTPUT "${folder}/${target}.plugin.yaml" CONTENT
"kind: @ARG_KIND@
name: \"@ARG_NAME@\"
version: \"@ARG_VERSION@\"
library: @target@.so
abi: \"@MINFER_ABI_MAJOR@.@MINFER_ABI_MINOR@\"
abi_hash: \"@MINFER_ABI_HASH@\"
platform: @MINFER_PLUGIN_PLATFORM@
priority: @ARG_PRIORITY@
" @ONLY)

  if(CMAKE_TESTING_ENABLED AND NOT MINFER_SANITIZE)  # a sanitizer exports symbols of its own
    add_test(NAME "plugin: ${target} exports exactly one symbol"
      COMMAND "${CMAKE_COMMAND}" -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:${target}>
        -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_exports.cmake")
  endif()
  if(ARG_FOLDER)
    return()
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/minfer/plugins)
  install(FILES "${folder}/${target}.plugin.yaml" DESTINATION lib/minfer/plugins)
endfunction()
