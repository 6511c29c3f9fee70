# doppler_web(VARIABLE): sets VARIABLE to the source file that holds the page of reports, bundled from web/ by esbuild. Where
# npm is absent, or cannot reach its registry, it is a file without a page, and reports are plain. Everything happens in
# the build tree; nothing of npm is installed with the command.
function(doppler_web variable)
  set(${variable} ${PROJECT_SOURCE_DIR}/doppler/report/page_bundle_absent.cpp PARENT_SCOPE)
  find_program(NPM npm)
  find_program(NODE node)
  if(NOT NPM OR NOT NODE)
    message(STATUS "npm is absent: reports will be plain pages without timelines; required node and npm")
    return()
  endif()
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(built ${CMAKE_BINARY_DIR}/web)
  foreach(file package.json package-lock.json bundle.mjs tsconfig.json)
    configure_file(${web}/${file} ${built}/${file} COPYONLY)
  endforeach()
  if(NOT EXISTS ${built}/node_modules/esbuild OR ${web}/package-lock.json IS_NEWER_THAN ${built}/node_modules/esbuild)
    execute_process(COMMAND ${NPM} ci --omit=dev --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${built}
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
    if(failed)
      message(STATUS "npm could not install esbuild: reports will be plain pages without timelines\n${why}")
      return()
    endif()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${web}/src/*.ts ${web}/src/*.css)
  add_custom_command(OUTPUT ${built}/page_bundle.cpp
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${web}/src ${built}/src
    COMMAND ${NODE} bundle.mjs ${built}/page_bundle.cpp
    WORKING_DIRECTORY ${built} DEPENDS ${sources} ${web}/bundle.mjs ${web}/package-lock.json VERBATIM
    COMMENT "Bundling the page of reports")
  set(${variable} ${built}/page_bundle.cpp PARENT_SCOPE)
endfunction()
