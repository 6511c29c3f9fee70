#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "doppler/base/error.h"
#include "doppler/graph/formats/native_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace doppler {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A reader refuses a text with InputError and nothing else, or gives a graph that survives our own format.
template <typename Parse>
int check_reader(Parse parse, const std::uint8_t* data, std::size_t size) {
  try {
    const LoadedGraph loaded = parse(as_text(data, size));
    const std::string first = graph_to_json(loaded.graph);
    const std::string second = graph_to_json(parse_native_json("again", first).graph);
    DOPPLER_CHECK(first == second, "a graph changes when it is written and read");
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace doppler
