# `cmake --install`: the command, one static library per module with its headers, and a package for find_package().
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/doppler)
install(TARGETS doppler RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS metis onnx_libraries openblas EXPORT doppler)  # doppler_place, doppler_onnx, doppler_engine link them
get_property(modules GLOBAL PROPERTY DOPPLER_MODULES)
foreach(module IN LISTS modules)
  install(TARGETS doppler_${module} EXPORT doppler ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/doppler/${module})  # doppler_onnx lives in doppler/program
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/doppler/${module} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/doppler
      FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(EXPORT doppler NAMESPACE doppler:: FILE dopplerTargets.cmake DESTINATION ${package_directory})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dopplerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dopplerConfig.cmake INSTALL_DESTINATION ${package_directory})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dopplerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dopplerConfig.cmake ${PROJECT_BINARY_DIR}/dopplerConfigVersion.cmake
  DESTINATION ${package_directory})
