#include "doppler/placement.h"
#include "tests/fuzz/check_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr doppler::OpId kOps = 4;  // as in tests/data/good/placement.json
  constexpr doppler::DeviceId kDevices = 2;
  try {
    const auto placement = doppler::parse_placement("fuzz", doppler::as_text(data, size)).placement;
    doppler::check_size("fuzz", placement, kOps, kDevices);
    DOPPLER_CHECK(placement.device_of_op.size() == kOps, "{} ops", placement.device_of_op.size());
    for (const doppler::DeviceId device : placement.device_of_op) DOPPLER_CHECK(device < kDevices, "{}", device);
  } catch (const doppler::InputError&) {
  }
  return 0;
}
