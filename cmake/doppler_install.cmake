# `cmake --install`: the command, one shared library with everything in it, the public headers, and a package for
# find_package(). The library's own libraries stay behind it, so that a user needs none of their headers or paths.
include(CMakePackageConfigHelpers)

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/library.cpp CONTENT "// All code is in the modules; CMake wants a source.\n")
add_library(doppler_library SHARED ${PROJECT_BINARY_DIR}/library.cpp)
set_target_properties(doppler_library PROPERTIES OUTPUT_NAME doppler EXPORT_NAME doppler LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(doppler::doppler ALIAS doppler_library)
target_compile_features(doppler_library PUBLIC cxx_std_20)
target_include_directories(doppler_library PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
get_property(modules GLOBAL PROPERTY DOPPLER_MODULES)
# Whole archives: nothing in the library itself calls what only users call.
foreach(module IN LISTS modules)
  list(APPEND archives $<TARGET_FILE:doppler_${module}>)
  add_dependencies(doppler_library doppler_${module})
endforeach()
target_link_libraries(doppler_library PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive doppler_api)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/doppler)
install(TARGETS doppler RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS doppler_library EXPORT doppler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/doppler DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT doppler NAMESPACE doppler:: FILE dopplerTargets.cmake DESTINATION ${package_directory})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dopplerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dopplerConfig.cmake INSTALL_DESTINATION ${package_directory})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dopplerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dopplerConfig.cmake ${PROJECT_BINARY_DIR}/dopplerConfigVersion.cmake
  DESTINATION ${package_directory})

# What the command says of itself: completions of shells, the man page, and the documents that --help cites.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
foreach(page
    "bash|share/bash-completion/completions/doppler" "zsh|share/zsh/site-functions/_doppler"
    "fish|share/fish/vendor_completions.d/doppler.fish" "man|share/man/man1/doppler.1")
  string(REPLACE "|" ";" page ${page})
  list(GET page 0 shell)
  list(GET page 1 file)
  install(CODE "
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")
    get_filename_component(directory \"\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${directory}\")
    message(STATUS \"Installing: \${file}\")
    execute_process(COMMAND $<TARGET_FILE:doppler> completion ${shell} OUTPUT_FILE \"\${file}\" COMMAND_ERROR_IS_FATAL ANY)")
endforeach()
