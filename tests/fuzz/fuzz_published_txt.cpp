#include "doppler/graph/formats/published_txt.h"
#include "tests/fuzz/check_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const doppler::ReadOptions repair{.repair = true};
  return doppler::check_reader(
      [&](std::string_view text) { return doppler::parse_published_txt("fuzz", text, repair); }, data, size);
}
