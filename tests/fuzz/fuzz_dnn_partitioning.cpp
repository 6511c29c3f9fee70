#include "doppler/graph/formats/dnn_partitioning.h"
#include "tests/fuzz/check_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return doppler::check_reader(
      [](std::string_view text) { return doppler::parse_dnn_partitioning("fuzz", text); }, data, size);
}
