#include "doppler/program/lower/lower.h"
#include "doppler/program/text/ein_text.h"
#include "tests/fuzz/check_reader.h"

// A program is refused with InputError and nothing else, or lowers to a graph that survives our own format.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parse = [](std::string_view text) {
    const doppler::program::EinProgram model = doppler::program::parse_ein("fuzz", text);
    const doppler::program::Plan plan = doppler::program::uncut(*model.program);
    return doppler::LoadedGraph{doppler::program::lower(*model.program, plan).graph, "ein", {}};
  };
  return doppler::check_reader(parse, data, size);
}
