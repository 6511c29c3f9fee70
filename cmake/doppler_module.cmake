# Warnings and sanitizers as INTERFACE targets, and doppler_module(): one static library per directory.

add_library(doppler_warnings INTERFACE)
target_compile_options(doppler_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual
  -Wno-restrict -Wno-array-bounds  # g++ 12 reports copies of std::string falsely (PR105651)
  $<$<BOOL:${DOPPLER_WERROR}>:-Werror>)

add_library(doppler_sanitizers INTERFACE)
if(DOPPLER_SANITIZE)
  target_compile_options(doppler_sanitizers INTERFACE
    -fsanitize=${DOPPLER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(doppler_sanitizers INTERFACE -fsanitize=${DOPPLER_SANITIZE})
endif()

# For tests, verbs and results, which wait for the modules most of the time: optimising them takes longer than it saves.
add_library(doppler_not_hot INTERFACE)
if(DOPPLER_SANITIZE)
  target_compile_options(doppler_not_hot INTERFACE -O0)
else()
  target_compile_options(doppler_not_hot INTERFACE -O1)
endif()

# Presets compile several files as one (CMAKE_UNITY_BUILD), which reads shared headers once. Small enough that two cores
# have work and that an edit compiles little else; `cmake --preset dev -DCMAKE_UNITY_BUILD=OFF` compiles file by file.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)

# What most files read, compiled once per kind of target: without it, every file spends a second on the standard library.
# Targets share a precompiled header only if they are compiled alike.
set(DOPPLER_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <numeric>
  <optional> <span> <string> <string_view> <vector> <fmt/format.h> <nlohmann/json.hpp>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/prefix.cpp CONTENT "// Only its precompiled header is used.\n")
foreach(prefix doppler_prefix doppler_not_hot_prefix)
  add_library(${prefix} OBJECT ${PROJECT_BINARY_DIR}/prefix.cpp)
  target_compile_features(${prefix} PRIVATE cxx_std_20)
  target_link_libraries(${prefix} PRIVATE fmt::fmt nlohmann_json::nlohmann_json doppler_warnings doppler_sanitizers)
  target_precompile_headers(${prefix} PRIVATE ${DOPPLER_COMMON_HEADERS})
endforeach()
target_link_libraries(doppler_not_hot_prefix PRIVATE doppler_not_hot)

# doppler_module(NAME SOURCES a.cpp … USES other modules and libraries … PRIVATE_USES libraries hidden from headers …
# OWN_HEADERS NOT_HOT): OWN_HEADERS where the module precompiles its own, NOT_HOT where it computes next to nothing.
function(doppler_module name)
  cmake_parse_arguments(ARG "OWN_HEADERS;NOT_HOT" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(doppler_${name} STATIC ${ARG_SOURCES})
  add_library(doppler::${name} ALIAS doppler_${name})
  set_property(GLOBAL APPEND PROPERTY DOPPLER_MODULES ${name})  # what the shared library is made of
  target_include_directories(doppler_${name} PUBLIC
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(doppler_${name} PUBLIC cxx_std_20)
  target_link_libraries(doppler_${name} PUBLIC ${ARG_USES}
    PRIVATE ${ARG_PRIVATE_USES} $<BUILD_INTERFACE:doppler_warnings> PUBLIC $<BUILD_INTERFACE:doppler_sanitizers>)
  if(ARG_NOT_HOT)
    target_link_libraries(doppler_${name} PRIVATE $<BUILD_INTERFACE:doppler_not_hot>)
    target_precompile_headers(doppler_${name} REUSE_FROM doppler_not_hot_prefix)
  elseif(NOT ARG_OWN_HEADERS)
    target_precompile_headers(doppler_${name} REUSE_FROM doppler_prefix)
  endif()
endfunction()

# doppler_hot(NAME): the module has hot loops. Releases compile it file by file, so that what is inlined into them does not
# depend on their neighbours.
function(doppler_hot name)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_target_properties(doppler_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()
