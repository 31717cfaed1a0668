# Writes OUTPUT with the version, the commit and the compiler, and touches it only when they change.
execute_process(COMMAND git describe --always --dirty=+ --exclude=* --abbrev=12
  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#pragma once
#define PAGODA_STAMP_VERSION "@VERSION@"
#define PAGODA_STAMP_COMMIT "@commit@"
#define PAGODA_STAMP_COMPILER "@COMPILER@"
#define PAGODA_STAMP_BUILD_TYPE "@BUILD_TYPE@"
]])
