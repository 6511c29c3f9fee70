# Installs BUILD into a fresh prefix, then builds the programs of SOURCE/examples against it and runs them. The prefix is
# moved first: nothing in it may depend on where it was made.
set(prefix ${BUILD}/install_test/prefix)
file(REMOVE_RECURSE ${BUILD}/install_test)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${code}:\n${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix}_made)
file(RENAME ${prefix}_made ${prefix})
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install -B ${BUILD}/install_test/consumer
  -DCMAKE_PREFIX_PATH=${prefix} -DEXAMPLES=${SOURCE}/examples)
run(${CMAKE_COMMAND} --build ${BUILD}/install_test/consumer)
run(${BUILD}/install_test/consumer/place_model ${SOURCE}/tests/data/onnx/conv.onnx)
run(${BUILD}/install_test/consumer/build_graph)
run(${BUILD}/install_test/consumer/own_method ${SOURCE}/examples/blocks.json)
run(${prefix}/bin/doppler --version)

foreach(module doppler_models doppler_torch doppler_cuda)
  if(EXISTS ${BUILD}/bin/${module}.so AND NOT EXISTS ${prefix}/lib/doppler/${module}.so)
    message(FATAL_ERROR "found no ${prefix}/lib/doppler/${module}.so; required beside the command")
  endif()
endforeach()

# The public headers are the only ones, and none of them shows another library.
file(GLOB_RECURSE headers ${prefix}/include/*.h)
foreach(header IN LISTS headers)
  file(STRINGS ${header} foreign REGEX "#include [<\"](fmt|nlohmann|CLI|torch|onnx|google)")
  if(foreign)
    message(FATAL_ERROR "${header}: found '${foreign}'; required no third-party header")
  endif()
endforeach()
