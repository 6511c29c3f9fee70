#include "doppler/kernels/npy.h"
#include "tests/fuzz/check_reader.h"

// An array file is refused with InputError and nothing else, or is written and read without a change.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string first = to_npy(doppler::parse_npy("fuzz", doppler::as_text(data, size)));
    DOPPLER_CHECK(to_npy(doppler::parse_npy("again", first)) == first, "an array changes when it is written and read");
  } catch (const doppler::InputError&) {
  }
  return 0;
}
