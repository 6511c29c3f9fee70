#include "doppler/app/flags/options.h"

#include <charconv>
#include <filesystem>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/report.h"
#include "doppler/report/text.h"
#include "doppler/results.h"

namespace doppler {
namespace {

std::string machine_help() {
  std::string help =
      "A machine file (docs/machines.md), uniform:N, uniform:N:MEMORY, a kind and a number such as h100:8 or "
      "rtx4090:1+rtx3060:1 (see 'doppler machines'), or a preset:";
  for (const MachinePreset& preset : machine_presets()) help += fmt::format(" {}", preset.name);
  return help;
}

// What earlier runs wrote may be written again; any other existing file is more likely a graph, even a broken one.
bool is_input(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto file = nlohmann::json::parse(read_file(path), nullptr, false);  // "discarded" if it is not JSON
  if (!file.is_object()) return true;
  if (file.contains("result") || file.contains("results")) return false;  // the second is how older versions began
  return !file.contains("graph") || file.contains("assignment");
}

}  // namespace

CLI::Validator whole_number() {
  const auto check = [](std::string& text) {
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = status == std::errc() && end == text.data() + text.size();
    return whole ? std::string() : fmt::format("found '{}'; required a whole number, not negative", text);
  };
  return CLI::Validator(check, "");
}

void add_result_flags(CLI::App& verb, Options& options) {
  verb.add_option("--json", options.json, "JSON instead of tables; with a file, JSON there and tables here")
      ->type_name("[FILE]");
  verb.add_flag("-q,--quiet", options.quiet, "No progress, notes or warnings on standard error");
}

void add_output_flags(CLI::App& verb, Options& options) {
  add_result_flags(verb, options);
  verb.add_option("--html", options.html, "The result as a page to look at, in one file")->type_name("FILE");
}

void add_timeline_flag(CLI::App& verb, Options& options) {
  verb.add_flag("--timeline", options.timeline, "JSON has the timeline too, which 'doppler report' draws");
  verb.add_flag("--ascii", options.ascii, "Print the timeline too, as lines of letters");
}

void add_machine_flag(CLI::App& verb, Options& options, bool required) {
  verb.add_option("-m,--machine", options.machine, machine_help())->type_name("MACHINE")->required(required);
  verb.add_option("--reserve", options.reserve, "How much of every device's memory stays free, such as 10%")
      ->type_name("SHARE");
}

void add_dim_flag(CLI::App& verb, std::vector<std::string>& dims) {
  verb.add_option("--dim", dims, "ONNX: the size of a symbolic dimension, or of tensor:axis; may be repeated")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
}

void add_graph_flags(CLI::App& verb, Options& options) {
  verb.add_flag("--repair", options.repair, "Fix the known damage of the published graphs instead of warning");
  add_dim_flag(verb, options.dims);
  verb.add_option("--shard", options.shard,
                  "ONNX: cut every op that can be cut in at most this many blocks; auto: as pays best (place, run)")
      ->type_name("PARTS");
  verb.add_flag("--no-rewrite", options.no_rewrite, "ONNX: keep the model's nodes as they are; fuse none");
  verb.add_option("--times", options.times,
                  "Measured times of ops: CSV, an ONNX Runtime or PyTorch profile, a trace of ours (docs/profiles.md); "
                  "may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_granularity_flag(CLI::App& verb, Options& options) {
  verb.add_option("--granularity", options.granularity,
                  "What stays together on one device: op, module or layer (repeated blocks), by names of ops")
      ->default_str("op; module for --export device-map");
}

void add_rule_flags(CLI::App& verb, Options& options) {
  verb.add_option("--discipline", options.discipline, "Which ready op runs next: fifo, priority, ordered or random")
      ->capture_default_str();
  verb.add_option("--links", options.links,
                  "How tensors move: free (pure delay), channels (they queue), receiver (the destination copies) or "
                  "shared (one "
                  "memory, nothing moves); by default what the machine says")
      ->default_str("free for presets of accelerators");
  verb.add_option("--ties", options.ties, "fifo at equal times: by_id or published")->capture_default_str();
  verb.add_flag("--bulk-synchronous", options.bulk_synchronous, "A barrier after each level of the graph");
  verb.add_option("--jitter", options.jitter,
                  "How much times vary: sigma of a lognormal factor on every time; by default what the machine says")
      ->type_name("SIGMA");
  verb.add_option("--seed", options.seed, "Fixes every random choice")->check(whole_number())->capture_default_str();
}

void add_objective_flag(CLI::App& verb, Options& options) {
  verb.add_option(
          "--objective", options.objective,
          "What placements are judged by: exact (times as modelled), expected (the mean where they vary) or p95 "
          "(what all but one run in twenty keep)")
      ->check(CLI::IsMember({"exact", "expected", "p95"}))
      ->default_str("expected where the machine has jitter, else exact");
}

void add_search_flags(CLI::App& verb, Options& options) {
  CLI::Option* time =
      verb.add_option("--time", options.time, "For methods that search: how long, each")->capture_default_str();
  verb.add_flag("--cpu-time", options.cpu_time, "--time is of the processor, for comparisons on a busy machine");
  verb.add_option("--evaluations", options.evaluations, "For methods that search: how many simulations; reproducible")
      ->check(whole_number())
      ->excludes(time);
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  verb.add_option("--threads", options.threads, "Never changes the result, only when it is there")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  verb.add_flag("--published", options.published, "critical_path as published, with its defects");
  verb.add_option("--pin", options.pins,
                  "Keep ops on a device (by name or index): an op, a module, or a pattern such as '*conv1*'; may be "
                  "repeated")
      ->type_name("OP=DEVICE")
      ->allow_extra_args(false);
}

std::vector<std::string> settle_json_flag(const CLI::App& command, std::vector<std::string> arguments) {
  const auto has_results = [&](const CLI::App* verb) {
    const CLI::Option* json = verb->get_option_no_throw("--json");
    return verb->get_name() == arguments.front() && json != nullptr && json->get_items_expected_max() > 0;
  };
  if (command.get_subcommands(has_results).empty()) return arguments;
  std::vector<std::string> settled;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != "--json") {
      settled.push_back(arguments[i]);
      continue;
    }
    const bool has_file = i + 1 < arguments.size() && (arguments[i + 1] == "-" || !arguments[i + 1].starts_with('-')) &&
                          !is_input(arguments[i + 1]);
    settled.push_back("--json=" + (has_file ? arguments[++i] : "-"));
  }
  return settled;
}

void refuse_flags_as_values(CLI::App& command) {
  const auto check = [](std::string& text) {
    const bool flag =
        text.starts_with("--") || (text.starts_with('-') && text.size() > 1 && std::isalpha(text[1]) != 0);
    return flag ? fmt::format("found '{}', a flag; required a value", text) : std::string();
  };
  for (CLI::Option* option : command.get_options())
    if (option->get_items_expected_min() > 0) option->check(CLI::Validator(check, ""));
  for (CLI::App* verb : command.get_subcommands({})) refuse_flags_as_values(*verb);
}

namespace {

// Whether a file can be written there, as far as one can tell without writing.
void check_place(const OutputFile& output) {
  std::error_code failed;
  const std::filesystem::path path = output.path;
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (std::filesystem::is_directory(path, failed))
    throw InputError(fmt::format("{}: '{}' is a directory; required a file", output.flag, output.path));
  if (!std::filesystem::is_directory(directory, failed))
    throw InputError(
        fmt::format("{}: found '{}', in no directory that exists; required an existing one", output.flag, output.path));
  if (!std::filesystem::exists(path, failed) && ::access(directory.c_str(), W_OK) != 0)
    throw InputError(fmt::format("{}: found '{}', in a directory without permission to write; required one with it",
                                 output.flag, output.path));
}

}  // namespace

void check_outputs(const std::vector<std::string>& inputs, const std::vector<OutputFile>& outputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty() || output->path == "-") continue;
    check_place(*output);
    for (const std::string& input : inputs)
      if (!input.empty() && same_file(output->path, input))
        throw InputError(fmt::format("{}: found '{}', which is the input '{}'; required another file", output->flag,
                                     output->path, input));
    for (auto other = outputs.begin(); other != output; ++other)
      if (!other->path.empty() && other->path != "-" && same_file(output->path, other->path))
        throw InputError(
            fmt::format("{} and {}: both are '{}'; required two files", other->flag, output->flag, output->path));
  }
}

void write_result_if_asked(const Options& options, const AnyResult& result, const std::string& metrics) {
  if (!options.json.empty()) write_file_atomically(options.json, to_json(result));
  if (!options.html.empty())
    write_file_atomically(options.html, report_page(options.html, {{options.html, result, metrics}}));
}

void print_text(const Options& options, const std::string& text) {
  if (!options.json_to_stdout()) write_file_atomically("-", text);
}

void present(const Options& options, const AnyResult& result, const std::string& metrics) {
  write_result_if_asked(options, result, metrics);
  print_text(options, to_text(result));
  if (options.ascii) print_text(options, "\n" + timeline_text({options.html, result}));
}

}  // namespace doppler
