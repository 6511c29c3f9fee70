#include "doppler/program/text/program_json.h"
#include "tests/fuzz/check_reader.h"

// A graph file whose program is refused with InputError and nothing else, or is written and read without a change.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace doppler::program;
  try {
    const doppler::LoadedGraph file = doppler::parse_native_json("fuzz", doppler::as_text(data, size));
    if (file.program.empty()) return 0;
    const RunnableProgram first = load_program("fuzz", file.program, file.graph);
    const std::string text = program_to_json(*first.program, first.plan, first.options);
    const RunnableProgram second = load_program("again", text, file.graph);
    DOPPLER_CHECK(program_to_json(*second.program, second.plan, second.options) == text,
                  "a program changes when it is written and read");
  } catch (const doppler::InputError&) {
  }
  return 0;
}
