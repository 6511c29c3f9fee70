#include "doppler/report.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/flags/options.h"
#include "doppler/app/training_run.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"

namespace doppler {
namespace {

struct ReportFlags : Options {
  std::vector<std::string> inputs;
  std::string output, title;
};

NamedResult training_in(const std::string& directory) {
  TrainingResult training;
  training.directory = directory;
  return {.name = directory, .result = std::move(training), .metrics = metrics_of(directory)};
}

// Returns what the ending of the file's name asks for.
std::string drawn(const ReportFlags& flags, const std::vector<NamedResult>& results) {
  if (flags.output.ends_with(".svg")) return picture_svg(results);
  if (flags.output.ends_with(".csv")) {
    if (results.size() != 1)
      throw InputError(fmt::format("{}: found {} results; required one, since a table has one timeline", flags.output,
                                   results.size()));
    return timeline_csv(results[0]);
  }
  if (flags.output != "-" && !flags.output.ends_with(".html") && !flags.output.ends_with(".htm"))
    throw InputError(fmt::format("{}: found another ending; required .html, .svg or .csv", flags.output));
  return report_page(flags.title.empty() ? flags.inputs.front() : flags.title, results);
}

void run_report(const ReportFlags& flags) {
  if (flags.output.empty() && !flags.ascii)
    throw InputError("report: found neither -o nor --ascii; required a file to write, or --ascii for the terminal");
  check_outputs(flags.inputs, {{"-o", flags.output}});
  std::vector<NamedResult> results;
  for (const std::string& input : flags.inputs) {
    if (std::filesystem::is_directory(input))
      results.push_back(training_in(input));
    else
      results.push_back({.name = input, .result = parse_result(input, read_file(input))});
  }
  if (!flags.output.empty()) write_file_atomically(flags.output, drawn(flags, results));
  if (!flags.ascii) return;
  std::string text;
  for (const NamedResult& result : results) text += fmt::format("{}\n{}\n", result.name, timeline_text(result));
  write_file_atomically("-", text);
}

}  // namespace

void add_report(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("report", "Draw results: a page, a picture, a table, lines of letters");
  auto flags = std::make_shared<ReportFlags>();
  verb->add_option("results", flags->inputs,
                   "What --json wrote, or the directory of a training; neighbours share a time axis")
      ->required();
  verb->add_option("-o,--output", flags->output,
                   "A page (.html), a picture of the timelines (.svg) or a table of one (.csv); - is standard output")
      ->type_name("FILE");
  verb->add_flag("--ascii", flags->ascii, "Print the timelines as lines of letters");
  verb->add_option("--title", flags->title, "Instead of the first file's name");
  verb->footer(
      "Example:\n  doppler place g.json --machine p100x4 --timeline --json place.json\n"
      "  doppler report place.json -o report.html");
  verb->callback([flags] { run_report(*flags); });
}

}  // namespace doppler
