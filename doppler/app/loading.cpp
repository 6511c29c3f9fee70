#include "doppler/app/loading.h"

#include <charconv>

#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/objective.h"
#include "doppler/report/text.h"

namespace doppler {

namespace {

// "name=size", each name once.
std::map<std::string, std::int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t> dims;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');  // a name may contain one
    std::int64_t size = 0;
    const char *first = text.data() + std::min(text.size(), equals + 1), *last = text.data() + text.size();
    if (equals == std::string::npos || equals == 0 ||
        std::from_chars(first, last, size) != std::from_chars_result{last, {}})
      throw InputError(fmt::format("--dim: found '{}'; required NAME=SIZE", text));
    if (!dims.emplace(text.substr(0, equals), size).second)
      throw InputError(fmt::format("--dim: found '{}' twice; required one size per name", text.substr(0, equals)));
  }
  return dims;
}

std::uint32_t parse_shard(const std::string& text) {
  constexpr std::uint32_t kMost = 1u << 20;
  if (text.empty()) return 0;
  if (text == "auto") return LoadOptions::kAutoShard;
  std::uint32_t parts = 0;
  const char* last = text.data() + text.size();
  if (std::from_chars(text.data(), last, parts) != std::from_chars_result{last, {}} || parts > kMost)
    throw InputError(fmt::format("--shard: found '{}'; required a whole number, not negative, or auto", text));
  return parts;
}

}  // namespace

LoadOptions load_options(const Options& options, Purpose purpose) {
  LoadOptions result;
  result.rules = {.discipline = parse_discipline(options.discipline),
                  .ties = parse_ties(options.ties),
                  .bulk_synchronous = options.bulk_synchronous,
                  .seed = options.seed};
  if (!options.links.empty()) result.links = parse_links(options.links);
  result.pins = options.pins;
  result.repair = options.repair;
  result.dims = parse_dims(options.dims);
  result.shard = parse_shard(options.shard);
  if (!options.granularity.empty()) result.granularity = parse_granularity(options.granularity);
  result.times = options.times;
  result.rewrite = !options.no_rewrite;
  result.runnable = purpose == Purpose::execution;
  return result;
}

Machine machine_from(const Options& options) {
  Machine machine = load_machine(options.machine);
  if (!options.reserve.empty()) machine = machine.with_reserve(parse_share(options.reserve, "--reserve"));
  return options.jitter ? machine.with_jitter(*options.jitter) : machine;
}

void warn(const GraphFile& file) {
  for (const std::string& warning : file.warnings) complain("warning: " + warning);
}

GraphFile load_graph(const std::string& path, const Machine* machine, const Options& options, Purpose purpose) {
  GraphFile file = read_graph_file(path, machine, load_options(options, purpose));
  if (!options.quiet) warn(file);
  return file;
}

LoadedProblem load(const std::string& path, const Machine& machine, const Options& options, Purpose purpose) {
  GraphFile file = load_graph(path, &machine, options, purpose);
  Problem problem = make_problem(file, machine, load_options(options));
  return {std::move(file), std::move(problem)};
}

LoadedProblem load(const std::string& path, const Options& options, Purpose purpose) {
  return load(path, machine_from(options), options, purpose);
}

std::string show_time(const LoadedProblem& loaded, Seconds value) {
  return format_time(value, loaded.problem.graph().unitless());
}

}  // namespace doppler
