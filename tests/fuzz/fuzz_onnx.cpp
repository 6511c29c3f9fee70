#include "doppler/program/onnx/import.h"
#include "tests/fuzz/check_reader.h"

// A model is refused with InputError and nothing else, or gives a graph that survives our own format, whole and cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const doppler::program::Index parts : {0, 2}) {
    const auto parse = [&](std::string_view content) {
      doppler::program::ImportedModel model =
          doppler::program::import_onnx("fuzz", content, {.dims = {}, .shard = parts, .decompose = {.parts = parts}});
      return doppler::LoadedGraph{std::move(model.graph), "onnx", {}};
    };
    doppler::check_reader(parse, data, size);
  }
  return 0;
}
