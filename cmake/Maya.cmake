# A layer is a folder under src/: a static, position-independent library `maya_<name>` and its tests.
# Includes: "maya/…" (public) and "<layer>/…" (internal).
function(maya_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(maya_${name} STATIC ${ARG_SOURCES})
  set_target_properties(maya_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(maya_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(maya_${name} PUBLIC ${ARG_DEPS})
  target_compile_options(maya_${name} PRIVATE ${MAYA_WARNINGS})
endfunction()

# GoogleTest binary `<name>_test`, registered with ctest.
function(maya_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT MAYA_TESTS)
    return()
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${name}_test PRIVATE ${MAYA_WARNINGS})
  target_compile_definitions(${name}_test PRIVATE MAYA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_test)
endfunction()
