# Several sources a compilation: most of the time goes into the headers that they share. Off, a change to one file
# compiles that file alone.
option(MAYA_UNITY "Compile the sources of a target in groups of eight" ON)
function(maya_group_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MAYA_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# A layer is a folder under src/: a static, position-independent library `maya_<name>` and its tests. ONE_BY_ONE: its
# files use the same names in their anonymous namespaces and cannot share a compilation.
# Includes: "maya/…" (public) and "<layer>/…" (internal).
function(maya_layer name)
  cmake_parse_arguments(ARG "ONE_BY_ONE" "" "SOURCES;DEPS" ${ARGN})
  add_library(maya_${name} STATIC ${ARG_SOURCES})
  set_target_properties(maya_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(maya_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(maya_${name} PUBLIC ${ARG_DEPS})
  target_compile_options(maya_${name} PRIVATE ${MAYA_WARNINGS})
  if(NOT ARG_ONE_BY_ONE)
    maya_group_sources(maya_${name})
  endif()
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
  # Only for sources that need it: a path in every command would prevent clones from sharing a compiler cache.
  foreach(source ${ARG_SOURCES})
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${source} asks REGEX MAYA_SOURCE_DIR LIMIT_COUNT 1)
    if(asks)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS MAYA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
  add_test(NAME ${name} COMMAND ${name}_test)
endfunction()
