# Installs BUILD into a fresh prefix, then configures, builds and runs the consumer in SOURCE against it.
set(prefix ${BUILD}/install_test/prefix)
file(REMOVE_RECURSE ${BUILD}/install_test)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${code}:\n${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${BUILD}/install_test/consumer -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${BUILD}/install_test/consumer)
run(${BUILD}/install_test/consumer/consumer)
run(${prefix}/bin/doppler --version)

foreach(module doppler_torch doppler_cuda)
  if(EXISTS ${BUILD}/bin/${module}.so AND NOT EXISTS ${prefix}/lib/doppler/${module}.so)
    message(FATAL_ERROR "found no ${prefix}/lib/doppler/${module}.so; required beside the command")
  endif()
endforeach()
