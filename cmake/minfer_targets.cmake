# Build helpers shared by every folder: compiler flags, libraries, tests.
include(CheckCXXCompilerFlag)

# Flags that every target of the project is compiled with.
# -ffp-contract=off: results are defined to the bit, so the compiler may not fuse a*b+c on its own.
add_library(minfer_flags INTERFACE)
target_compile_options(minfer_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off)
if(MINFER_WERROR)
  target_compile_options(minfer_flags INTERFACE -Werror)
endif()
if(MINFER_SANITIZE)
  target_compile_options(minfer_flags INTERFACE -fsanitize=${MINFER_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(minfer_flags INTERFACE -fsanitize=${MINFER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(minfer_flags INTERFACE -Wno-maybe-uninitialized)  # false alarms in instrumented library code
  endif()
endif()
if(MINFER_BUILD_FUZZERS)
  target_compile_options(minfer_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# minfer_add_library(NAME SOURCES a.cpp ... DEPS minfer_base ... PRIVATE_DEPS fmt::fmt ...)
# A static library minfer_NAME whose headers are included as "NAME/header.hpp".
function(minfer_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(minfer_${name} STATIC ${ARG_SOURCES})
  target_include_directories(minfer_${name} PUBLIC "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}/core/include")
  target_link_libraries(minfer_${name} PUBLIC ${ARG_DEPS} PRIVATE minfer_flags ${ARG_PRIVATE_DEPS})
endfunction()

# minfer_add_test(NAME SOURCES a_test.cpp ... DEPS minfer_gguf ... [TIMEOUT seconds])
# One Catch2 program; each test case becomes one ctest entry of the same name (so names are unique in the whole tree).
function(minfer_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(test_${name} ${ARG_SOURCES})
  target_link_libraries(test_${name} PRIVATE minfer_test_support ${ARG_DEPS} minfer_flags)
  # NoAssertions: a test without an assertion fails. 77: the one way to skip (tests/support/skip.hpp).
  catch_discover_tests(test_${name}
    EXTRA_ARGS -w NoAssertions
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77 FAIL_REGULAR_EXPRESSION "No test cases matched")
endfunction()

# Adds every sub-folder of DIR that has a CMakeLists.txt.
function(minfer_add_plugin_folders dir)
  file(GLOB folders CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${dir}/*/CMakeLists.txt")
  foreach(file IN LISTS folders)
    get_filename_component(folder "${file}" DIRECTORY)
    add_subdirectory("${folder}")
  endforeach()
endfunction()
