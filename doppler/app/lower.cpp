#include <memory>

#include "doppler/app/programs.h"
#include "doppler/app/verbs.h"

namespace doppler {

void add_lower(CLI::App& command) {
  struct LowerVerb : ProgramOptions {
    std::string path;
  };
  auto options = std::make_shared<LowerVerb>();
  CLI::App* verb = command.add_subcommand("lower", "Turn a program (.ein) into a graph of blocks");
  verb->add_option("program", options->path, "A program (docs/programs.md); - is standard input")->required();
  add_program_flags(*verb, *options);
  add_lowering_flags(*verb, *options);
  verb->footer("Example:\n  doppler lower examples/attention.ein --parts 4 -o graph.json");
  verb->callback([options] {
    const program::EinProgram model = read_ein(options->path);
    train_if_asked(*model.program, model.loss, *options);
    write_lowered(*model.program, make_plan(*model.program, *options, std::nullopt), options->path, *options);
  });
}

}  // namespace doppler
