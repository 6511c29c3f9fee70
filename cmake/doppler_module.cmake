# Warnings and sanitizers as INTERFACE targets, and doppler_module(): one static library per directory.

add_library(doppler_warnings INTERFACE)
target_compile_options(doppler_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual
  -Wno-restrict  # g++ 12 reports std::string operator+ falsely (PR105651)
  $<$<BOOL:${DOPPLER_WERROR}>:-Werror>)

add_library(doppler_sanitizers INTERFACE)
if(DOPPLER_SANITIZE)
  target_compile_options(doppler_sanitizers INTERFACE
    -fsanitize=${DOPPLER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(doppler_sanitizers INTERFACE -fsanitize=${DOPPLER_SANITIZE})
endif()

# For tests and verbs, which wait for the modules most of the time: optimising them takes longer than it saves. Of inline
# functions that they share with modules (of the JSON parser, say) the linker may keep their copy, so that of a release is
# optimised too.
add_library(doppler_not_hot INTERFACE)
if(DOPPLER_SANITIZE)
  target_compile_options(doppler_not_hot INTERFACE -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(doppler_not_hot INTERFACE -O2)
else()
  target_compile_options(doppler_not_hot INTERFACE -O1)
endif()

# Presets compile several files as one (CMAKE_UNITY_BUILD), which reads shared headers once. Small enough that two cores
# have work and that an edit compiles little else; `cmake --preset dev -DCMAKE_UNITY_BUILD=OFF` compiles file by file.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)

# doppler_module(NAME SOURCES a.cpp … USES other modules and libraries … PRIVATE_USES libraries hidden from headers …)
function(doppler_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(doppler_${name} STATIC ${ARG_SOURCES})
  add_library(doppler::${name} ALIAS doppler_${name})
  set_property(GLOBAL APPEND PROPERTY DOPPLER_MODULES ${name})  # what the shared library is made of
  target_include_directories(doppler_${name} PUBLIC
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(doppler_${name} PUBLIC cxx_std_20)
  target_link_libraries(doppler_${name} PUBLIC ${ARG_USES}
    PRIVATE ${ARG_PRIVATE_USES} $<BUILD_INTERFACE:doppler_warnings> PUBLIC $<BUILD_INTERFACE:doppler_sanitizers>)
endfunction()

# doppler_hot(NAME): the module has hot loops. Releases compile it file by file, so that what is inlined into them does not
# depend on their neighbours.
function(doppler_hot name)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_target_properties(doppler_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()
