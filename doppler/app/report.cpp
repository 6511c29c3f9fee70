#include "doppler/report.h"

#include <filesystem>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"

namespace doppler {
namespace {

struct ReportFlags : Options {
  std::vector<std::string> inputs;
  std::string output, title;
};

// A training that runs, or has ended, by the metrics in its directory.
NamedResult training_in(const std::string& directory) {
  TrainingResult training;
  training.directory = directory;
  NamedResult named{.name = directory, .result = std::move(training)};
  const std::string file = directory + "/metrics.jsonl";
  if (!std::filesystem::exists(file))
    throw InputError(fmt::format("{}: no metrics.jsonl; required the directory of 'doppler train --out'", directory));
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    if (lines.eof()) break;  // half a line: it is being written
    if (!nlohmann::json::accept(line))
      throw InputError(
          fmt::format("{}: line {} is no JSON; required an object per line", file, named.metrics.size() + 1));
    named.metrics.push_back(std::move(line));
  }
  return named;
}

void run_report(const ReportFlags& flags) {
  check_outputs(flags.inputs, {{"-o", flags.output}});
  std::vector<NamedResult> results;
  for (const std::string& input : flags.inputs) {
    if (std::filesystem::is_directory(input))
      results.push_back(training_in(input));
    else
      results.push_back({.name = input, .result = parse_result(input, read_file(input))});
  }
  write_file_atomically(flags.output, report_page(flags.title.empty() ? flags.inputs.front() : flags.title, results));
}

}  // namespace

void add_report(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("report", "Draw results as one HTML file");
  auto flags = std::make_shared<ReportFlags>();
  verb->add_option("results", flags->inputs,
                   "What --json wrote, or the directory of a training; neighbours share a time axis")
      ->required();
  verb->add_option("-o,--output", flags->output, "The HTML file; - is standard output")->required()->type_name("FILE");
  verb->add_option("--title", flags->title, "Instead of the first file's name");
  verb->add_flag("-q,--quiet", flags->quiet, "Has nothing to hide: nothing is printed anyway");
  verb->footer(
      "Example:\n  doppler place g.json --machine p100x4 --timeline --json place.json\n"
      "  doppler report place.json -o report.html");
  verb->callback([flags] { run_report(*flags); });
}

}  // namespace doppler
