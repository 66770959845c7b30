# Emulated libraries. `maya_shim(cudart)` builds one shared library per SONAME that spec/libraries.csv lists for cudart, from
# src/shim/cudart/*.cpp and the entry points that tools/gen/generate.py writes from spec/cudart.csv.
#
# Targets: maya_shim_<SONAME> each, maya_shim_<library> for a library, maya_shims for all. Files: ${CMAKE_BINARY_DIR}/lib/maya.

find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)

set(MAYA_SHIM_DIR ${CMAKE_BINARY_DIR}/lib/maya)
set(MAYA_SHIM_GENERATED ${CMAKE_BINARY_DIR}/generated/shim)
set(MAYA_SHIM_GENERATE ${PROJECT_SOURCE_DIR}/tools/gen/generate.py)
set(MAYA_SPEC ${PROJECT_SOURCE_DIR}/spec)
file(MAKE_DIRECTORY ${MAYA_SHIM_DIR})

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MAYA_SPEC}/libraries.csv ${MAYA_SHIM_GENERATE})
execute_process(
  COMMAND ${Python3_EXECUTABLE} -B ${MAYA_SHIM_GENERATE} cmake --spec ${MAYA_SPEC} --out ${MAYA_SHIM_GENERATED}/libraries.cmake
          COMMAND_ERROR_IS_FATAL ANY)
include(${MAYA_SHIM_GENERATED}/libraries.cmake)

set(MAYA_DRIVER_ENTRY_POINTS ${MAYA_SHIM_GENERATED}/driver_entry_points.inc)
add_custom_command(
  OUTPUT ${MAYA_DRIVER_ENTRY_POINTS}
  COMMAND ${Python3_EXECUTABLE} -B ${MAYA_SHIM_GENERATE} entry-points --spec ${MAYA_SPEC} --out ${MAYA_DRIVER_ENTRY_POINTS}
  COMMAND ${CMAKE_COMMAND} -E touch ${MAYA_DRIVER_ENTRY_POINTS}
  DEPENDS ${MAYA_SHIM_GENERATE} ${PROJECT_SOURCE_DIR}/tools/gen/spec.py ${MAYA_SPEC}/driver_versions.csv ${MAYA_SPEC}/cuda.csv
  COMMENT "Generating driver_entry_points.inc"
  VERBATIM)
add_custom_target(maya_driver_entry_points DEPENDS ${MAYA_DRIVER_ENTRY_POINTS})
add_custom_target(maya_shims)

# Code that several libraries share; it must not depend on the CUDA major.
file(GLOB common CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/shim/common/*.cpp)
list(FILTER common EXCLUDE REGEX "_test\\.cpp$")
if(common)
  add_library(maya_shim_common STATIC ${common})
  set_target_properties(maya_shim_common PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(maya_shim_common PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(maya_shim_common PUBLIC maya_device)
  target_compile_options(maya_shim_common PRIVATE ${MAYA_WARNINGS})
else()
  add_library(maya_shim_common INTERFACE)
endif()

function(maya_shim library)
  file(GLOB bodies CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/shim/${library}/*.cpp)
  list(FILTER bodies EXCLUDE REGEX "_test\\.cpp$")
  add_custom_target(maya_shim_${library})
  add_dependencies(maya_shims maya_shim_${library})
  foreach(soname ${MAYA_SHIM_${library}_SONAMES})
    set(generated ${MAYA_SHIM_GENERATED}/${soname})
    add_custom_command(
      OUTPUT ${generated}/stubs.cpp ${generated}/version.map
      COMMAND ${Python3_EXECUTABLE} -B ${MAYA_SHIM_GENERATE} stubs ${soname} --spec ${MAYA_SPEC} --out ${generated}
      COMMAND ${CMAKE_COMMAND} -E touch ${generated}/stubs.cpp ${generated}/version.map
      DEPENDS ${MAYA_SHIM_GENERATE} ${PROJECT_SOURCE_DIR}/tools/gen/spec.py ${MAYA_SPEC}/${library}.csv ${MAYA_SPEC}/libraries.csv
      COMMENT "Generating entry points of ${soname}"
      VERBATIM)
    set(target maya_shim_${soname})
    set(over ${MAYA_SHIM_${soname}_THIN_OVER})
    if(over)
      # A thin library has a name and a version node; what it offers is in the library it depends on.
      add_library(${target} SHARED ${generated}/stubs.cpp)
      target_link_options(${target} PRIVATE -Wl,--no-as-needed)
      target_link_libraries(${target} PRIVATE maya_shim_${over})
    else()
      add_library(${target} SHARED ${generated}/stubs.cpp ${bodies})
      # cuDNN's and cuBLASLt's files use the same names in their anonymous namespaces.
      if(NOT library MATCHES "^(cudnn|cublasLt)$")
        maya_group_sources(${target})
      endif()
      # These declare entry points without their types.
      set_source_files_properties(${generated}/stubs.cpp ${PROJECT_SOURCE_DIR}/src/shim/cuda/entry_table.cpp
                                  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      target_link_libraries(${target} PRIVATE maya_shim_common maya_device Threads::Threads ${CMAKE_DL_LIBS})
    endif()
    add_dependencies(${target} maya_driver_entry_points)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                                                 ${CMAKE_BINARY_DIR}/generated)
    target_compile_definitions(${target} PRIVATE MAYA_SHIM_SONAME="${soname}" ${MAYA_SHIM_${soname}_DEFINITIONS})
    # Entry points have C linkage and default visibility; the version script keeps everything else inside.
    target_compile_options(${target} PRIVATE ${MAYA_WARNINGS} -fvisibility-inlines-hidden -fno-semantic-interposition)
    target_link_options(${target} PRIVATE -Wl,--version-script=${generated}/version.map -Wl,-soname,${soname} -Wl,-Bsymbolic-functions)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
    set_target_properties(
      ${target}
      PROPERTIES PREFIX ""
                 SUFFIX ""
                 OUTPUT_NAME ${soname}
                 NO_SONAME ON
                 LIBRARY_OUTPUT_DIRECTORY ${MAYA_SHIM_DIR}
                 POSITION_INDEPENDENT_CODE ON
                 BUILD_RPATH "$ORIGIN"
                 INSTALL_RPATH "$ORIGIN"
                 BUILD_WITH_INSTALL_RPATH ON
                 LINK_DEPENDS ${generated}/version.map)
    foreach(alias ${MAYA_SHIM_${soname}_ALIASES})
      add_custom_command(TARGET ${target} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink ${soname}
                                                             ${MAYA_SHIM_DIR}/${alias})
    endforeach()
    add_dependencies(maya_shim_${library} ${target})
  endforeach()
endfunction()
