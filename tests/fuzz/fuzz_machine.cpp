#include "doppler/machine.h"
#include "tests/fuzz/check_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string first = machine_to_json(doppler::parse_machine("fuzz", doppler::as_text(data, size)));
    const std::string second = machine_to_json(doppler::parse_machine("again", first));
    DOPPLER_CHECK(first == second, "a machine changes when it is written and read");
  } catch (const doppler::InputError&) {
  }
  return 0;
}
