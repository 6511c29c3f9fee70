#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/programs.h"
#include "doppler/base/error.h"

namespace doppler {
namespace {

using program::Index;

// One family: its own options beside those of every program.
template <typename Sizes>
struct FamilyOptions : ProgramOptions {
  Sizes sizes;
  std::string dtype;
};

void size_flag(CLI::App& verb, const char* name, Index& value, const char* help) {
  verb.add_option(name, value, help)->check(whole_number())->capture_default_str();
}

// Parsed here and not by CLI11, whose text would not say where.
program::DType parse_real_dtype(const std::string& text) {
  using program::DType;
  for (const DType dtype : {DType::f16, DType::f32, DType::f64})
    if (to_string(dtype) == text) return dtype;
  throw InputError(fmt::format("--dtype: found '{}'; required f16, f32 or f64", text));
}

template <typename Sizes, typename Build>
void add_family(CLI::App& verb, std::shared_ptr<FamilyOptions<Sizes>> options, program::Family family, Build build) {
  add_program_flags(verb, *options);
  add_lowering_flags(verb, *options);
  options->dtype = to_string(options->sizes.dtype);
  verb.add_option("--dtype", options->dtype, "Of inputs and weights: f16, f32 or f64; the engine runs the latter two")
      ->capture_default_str();
  verb.callback([options, family, build, title = verb.get_name()] {
    check_outputs({options->machine}, {{"-o", options->output}});
    program::Program program;
    options->sizes.dtype = parse_real_dtype(options->dtype);
    build(program, options->sizes);
    std::optional<program::ExprId> loss;
    if (!options->train.empty() && !program.outputs().empty()) loss = program.outputs()[0];
    train_if_asked(program, loss, *options);
    write_lowered(program, family, title, *options);
  });
}

void add_chainmm(CLI::App& generate) {
  struct Sizes : program::ChainOptions {
    std::string order = "published";
  };
  auto options = std::make_shared<FamilyOptions<Sizes>>();
  options->parts = 16;
  CLI::App* verb = generate.add_subcommand("chainmm", "A chain of square matrix products");
  Sizes& sizes = options->sizes;
  size_flag(*verb, "--size", sizes.size, "Rows and columns of every matrix");
  size_flag(*verb, "--matrices", sizes.matrices, "How many, except for the published order");
  verb->add_option("--association", sizes.order, "published (C·(D·E) + A·B), left, balanced or random")
      ->capture_default_str();
  verb->add_option("--seed", sizes.seed, "Fixes the random association")->check(whole_number())->capture_default_str();
  verb->footer("Example:\n  doppler generate chainmm --plan published --costs published -o chainmm.json");
  add_family(*verb, options, program::Family::chain, [](program::Program& program, Sizes chosen) {
    chosen.association = program::parse_association(chosen.order);
    program::chain_of_products(program, chosen);
  });
}

void add_ffnn(CLI::App& generate) {
  auto options = std::make_shared<FamilyOptions<program::FfnnOptions>>();
  options->parts = 16;
  CLI::App* verb = generate.add_subcommand("ffnn", "A feed-forward network with a softmax, or a loss with --train");
  program::FfnnOptions& sizes = options->sizes;
  size_flag(*verb, "--batch", sizes.batch, "Rows of the input");
  size_flag(*verb, "--input", sizes.input, "Width of the input");
  size_flag(*verb, "--hidden", sizes.hidden, "Width of the hidden layers");
  size_flag(*verb, "--output-width", sizes.output, "Width of the output");
  size_flag(*verb, "--layers", sizes.layers, "Weight matrices");
  verb->footer("Example:\n  doppler generate ffnn --batch 4096 --layers 4 --hidden 8192 --train sgd -o ffnn.json");
  add_family(*verb, options, program::Family::ffnn, [options](program::Program& program, program::FfnnOptions chosen) {
    chosen.train = !options->train.empty();
    program::feed_forward(program, chosen);
  });
}

struct LlamaSizes {
  std::string model = "7b";
  program::LlamaOptions::Part part = program::LlamaOptions::Part::model;
  Index layers = 0, batch = 1, sequence = 4096, width = 0, heads = 0, hidden = 0, vocabulary = 32'000;
  bool decode = false;
  program::DType dtype = program::DType::f16;
};

program::LlamaOptions llama_options(const LlamaSizes& sizes) {
  program::LlamaOptions result = program::llama_model(sizes.model);
  const auto choose = [](Index& value, Index given) {
    if (given > 0) value = given;
  };
  choose(result.layers, sizes.layers);
  choose(result.width, sizes.width);
  choose(result.heads, sizes.heads);
  choose(result.hidden, sizes.hidden);
  result.batch = sizes.batch;
  result.sequence = sizes.sequence;
  result.vocabulary = sizes.vocabulary;
  result.part = sizes.part;
  result.decode = sizes.decode;
  result.dtype = sizes.dtype;
  return result;
}

// `layers` 0: as many as the model has, and a flag to choose.
void add_llama(CLI::App& generate, const char* name, const char* summary, program::Family family, Index layers) {
  auto options = std::make_shared<FamilyOptions<LlamaSizes>>();
  CLI::App* verb = generate.add_subcommand(name, summary);
  LlamaSizes& sizes = options->sizes;
  const bool block = family == program::Family::llama_block;
  sizes.layers = layers;
  if (block) sizes.part = program::LlamaOptions::Part::block;
  verb->add_option("--model", sizes.model, "Sizes of LLaMA 7b, 13b, 30b or 65b")->capture_default_str();
  if (layers == 0) size_flag(*verb, "--layers", sizes.layers, "Blocks; 0: all of the model");
  size_flag(*verb, "--batch", sizes.batch, "Sequences");
  size_flag(*verb, "--sequence", sizes.sequence, "Tokens per sequence, or in the cache of a decode step");
  size_flag(*verb, "--width", sizes.width, "Width of the model; 0: the model's");
  size_flag(*verb, "--heads", sizes.heads, "Attention heads; 0: the model's");
  size_flag(*verb, "--hidden", sizes.hidden, "Width of the feed-forward part; 0: the model's");
  if (!block) size_flag(*verb, "--vocabulary", sizes.vocabulary, "Logits");
  verb->add_flag("--decode", sizes.decode, "One new token against a cache");
  verb->footer(fmt::format("Example:\n  doppler generate {} --parts 8 -o {}.json", name, name));
  add_family(*verb, options, family, [options](program::Program& program, const LlamaSizes& chosen) {
    program::LlamaOptions llama = llama_options(chosen);
    llama.train = !options->train.empty();
    program::llama(program, llama);
  });
}

}  // namespace

void add_program_families(CLI::App& generate) {
  add_chainmm(generate);
  add_ffnn(generate);
  add_llama(generate, "llama-block", "One block of LLaMA: attention and feed-forward, no mask, no head",
            program::Family::llama_block, 1);
  add_llama(generate, "llama-layer", "LLaMA with one layer: mask, block, norm, logits", program::Family::llama_model,
            1);
  add_llama(generate, "llama", "LLaMA with all its layers", program::Family::llama_model, 0);
}

}  // namespace doppler
