#include <cstdlib>
#include <cstring>

#include "doppler/errors.h"
#include "doppler/program/onnx/tensor_file.h"

// A tensor or a model is refused with InputError and nothing else; a tensor that is read survives being written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  using namespace doppler::model;
  try {
    const Tensor tensor = parse_tensor_pb("fuzz", content);
    const Tensor again = parse_tensor_pb("fuzz", to_tensor_pb(tensor));
    const bool same =
        again.type == tensor.type &&
        (tensor.data == nullptr || std::memcmp(again.data.get(), tensor.data.get(), tensor.type.bytes()) == 0);
    if (!same) std::abort();
  } catch (const doppler::InputError&) {
  }
  try {
    parse_model_body("fuzz", content);
  } catch (const doppler::InputError&) {
  }
  return 0;
}
