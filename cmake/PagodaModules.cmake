# pagoda_module(NAME [DEPS module...] [LIBS library...] [EXCLUDE regex]):
# a static library pagoda_NAME of the .cpp files below the current folder, and, with PAGODA_TESTS, one
# executable NAME_test of its *_test.cpp files. The folder is the list of sources. What stands in *_for_test.cpp is in
# neither, but in pagoda_NAME_for_test, which the tests of this module and of those above it get, and the fuzzers.
#
# pagoda_test(NAME COMMAND word... [LABELS label...] [ENVIRONMENT NAME=value...]):
# registers a test and gives it what every test of ours needs.
#
# Every target of ours gets the project's warnings, as errors, and the sanitizers that were chosen.

add_library(pagoda_flags INTERFACE)
target_include_directories(pagoda_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
# No contraction: whether a product and a sum are fused is written in the source, not left to a compiler, because the
# same request must give the same bytes.
target_compile_options(pagoda_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wold-style-cast -Wno-missing-field-initializers -Werror -ffp-contract=off)
# Warnings of g++ 12 that depend on its optimiser and are wrong about std::variant, std::optional and std::string; what they
# look for is found by the sanitizers.
target_compile_options(pagoda_flags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow>)
if(PAGODA_SANITIZE)
  target_compile_options(pagoda_flags INTERFACE -fsanitize=${PAGODA_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(pagoda_flags INTERFACE -fsanitize=${PAGODA_SANITIZE})
endif()
if(PAGODA_FUZZ)
  # The coverage counters that steer the fuzzers.
  target_compile_options(pagoda_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(pagoda_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;LABELS;ENVIRONMENT")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  # Each test leaves its counts in a file of its own, from which scripts/run_tests.py adds them up.
  set(variables PAGODA_GOLDEN=${CMAKE_BINARY_DIR}/golden PAGODA_SUITES=${CMAKE_SOURCE_DIR}/tests
    GTEST_OUTPUT=json:${CMAKE_BINARY_DIR}/results/${name}.json ${arg_ENVIRONMENT})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "${variables}")
endfunction()

function(pagoda_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE" "DEPS;LIBS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(fixtures ${tests})
  list(FILTER fixtures INCLUDE REGEX "_for_test\\.cpp$")
  list(FILTER tests EXCLUDE REGEX "_for_test\\.cpp$")
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
    list(FILTER tests EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  list(TRANSFORM arg_DEPS PREPEND pagoda_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(pagoda_${name} STATIC ${sources})
    target_link_libraries(pagoda_${name} PUBLIC pagoda_flags ${deps} PRIVATE ${arg_LIBS})
  else()
    add_library(pagoda_${name} INTERFACE)
    target_link_libraries(pagoda_${name} INTERFACE pagoda_flags ${deps})
  endif()
  if(fixtures)
    add_library(pagoda_${name}_for_test STATIC EXCLUDE_FROM_ALL ${fixtures})
    target_link_libraries(pagoda_${name}_for_test PUBLIC pagoda_${name})
  endif()
  if(PAGODA_TESTS AND tests)
    add_executable(${name}_test ${tests})
    foreach(module pagoda_${name} ${deps})
      if(TARGET ${module}_for_test)
        target_link_libraries(${name}_test PRIVATE ${module}_for_test)
      endif()
    endforeach()
    target_link_libraries(${name}_test PRIVATE pagoda_${name} ${arg_LIBS} GTest::gtest_main)
    pagoda_test(${name} COMMAND ${name}_test LABELS unit)
  endif()
endfunction()
