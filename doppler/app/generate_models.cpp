#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/flags/options.h"
#include "doppler/app/programs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/program/onnx/zoo/zoo.h"

namespace doppler {
namespace {

constexpr program::Index kLargestSize = 1'000'000;

struct ModelFlags {
  program::ZooSizes sizes;
  std::string output = "-";
};

void model_size(CLI::App& verb, const char* name, program::Index& value, const char* help) {
  verb.add_option(name, value, help)->check(whole_number())->capture_default_str();
}

void check_sizes(const program::ZooSizes& sizes) {
  if (sizes.batch < 1) throw InputError("--batch: found 0; required at least 1");
  for (const program::Index size : {sizes.batch, sizes.image, sizes.sequence, sizes.layers, sizes.width, sizes.heads,
                                    sizes.hidden, sizes.vocabulary})
    if (size > kLargestSize)
      throw InputError(fmt::format("generate: found a size of {}; required at most {}", size, kLargestSize));
}

void add_model(CLI::App& generate, const program::ZooModel& model) {
  auto flags = std::make_shared<ModelFlags>();
  program::ZooSizes& sizes = flags->sizes;
  CLI::App* verb = generate.add_subcommand(std::string(model.name), std::string(model.summary));
  model_size(*verb, "--batch", sizes.batch, "Pictures or sequences");
  if (model.has_image) model_size(*verb, "--image", sizes.image, "Rows and columns; 0: as published");
  if (model.has_convolutions)
    verb->add_flag("--batch-norm", sizes.batch_norm, "Keep batch normalisations apart from convolutions");
  if (model.has_tokens) {
    model_size(*verb, "--sequence", sizes.sequence, "Tokens; 0: the usual number");
    model_size(*verb, "--vocabulary", sizes.vocabulary, "Words; 0: as published");
  }
  if (model.is_transformer) {
    model_size(*verb, "--layers", sizes.layers, "0: as published");
    model_size(*verb, "--width", sizes.width, "0: as published");
    model_size(*verb, "--heads", sizes.heads, "Attention heads; 0: as published");
    model_size(*verb, "--hidden", sizes.hidden, "Width of the feed-forward part; 0: as published");
  }
  verb->add_option("--weights", sizes.weights, "Draw weights by this seed and write them; else they are inputs")
      ->check(whole_number())
      ->type_name("SEED");
  verb->add_option("-o,--output", flags->output, "Where the model goes; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  verb->footer(fmt::format("Example:\n  doppler generate {0} -o {0}.onnx", model.name));
  verb->callback([flags, make = model.make] {
    check_sizes(flags->sizes);
    write_file_atomically(flags->output, make(flags->sizes));
  });
}

}  // namespace

void add_model_families(CLI::App& generate) {
  for (const program::ZooModel& model : program::zoo()) add_model(generate, model);
}

}  // namespace doppler
