#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doppler/results.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace doppler {

// The flags that mean the same in every verb. A verb adds the groups that apply to it.
struct Options {
  std::string machine;
  bool repair = false;
  std::vector<std::string> dims;  // "name=size"
  std::string shard;              // a number, or "auto"; empty: ops stay whole
  std::string granularity;        // empty: op
  std::vector<std::string> times;
  std::string reserve;  // of every device's memory, kept free; empty: nothing
  bool no_rewrite = false;

  std::string discipline = "fifo", links, ties = "by_id";
  bool bulk_synchronous = false;
  std::string objective;         // empty: the usual one
  std::optional<double> jitter;  // instead of what the machine says
  std::uint64_t seed = 0;

  std::string time = "10s";
  bool cpu_time = false;
  std::optional<std::uint64_t> evaluations;
  unsigned threads = 1;
  bool published = false;
  std::vector<std::string> pins;  // "op=device"

  bool quiet = false;
  std::string json;  // empty: none; "-": standard output instead of the tables
  std::string html;  // empty: none
  bool timeline = false, ascii = false;

  bool json_to_stdout() const { return json == "-"; }
  // Whether results are to carry schedules.
  bool wants_schedule() const { return timeline || ascii || !html.empty(); }
};

// For unsigned options: CLI11 alone would read -1 as the largest number, and too large a number as the
// largest too.
CLI::Validator whole_number();

void add_output_flags(CLI::App& verb, Options& options);   // --json --html --quiet
void add_result_flags(CLI::App& verb, Options& options);   // --json --quiet, where there is nothing to draw
void add_timeline_flag(CLI::App& verb, Options& options);  // --timeline --ascii
void add_machine_flag(CLI::App& verb, Options& options, bool required);
void add_dim_flag(CLI::App& verb, std::vector<std::string>& dims);
void add_graph_flags(CLI::App& verb, Options& options);  // --repair --dim --shard --no-rewrite --times
void add_rule_flags(CLI::App& verb, Options& options);   // --discipline … --seed
void add_granularity_flag(CLI::App& verb, Options& options);
void add_objective_flag(CLI::App& verb, Options& options);
void add_search_flags(CLI::App& verb, Options& options);  // --time … --pin

// `--json` may stand alone (standard output) or take a file. The next word is that file unless it is another
// flag or an existing graph or placement: `doppler info --json g.json` must neither overwrite its input nor
// miss it.
std::vector<std::string> settle_json_flag(const CLI::App& command, std::vector<std::string> arguments);
// Makes every option of every verb refuse a flag as its value: CLI11 alone would read `--time --json` as a time.
void refuse_flags_as_values(CLI::App& command);

// A file that a verb is asked to write, and the flag that asks; an empty path is none, "-" is standard output.
struct OutputFile {
  const char* flag;
  const std::string& path;
};
// Throws InputError if an output is one of the inputs, through any links, if two outputs are one, or if one cannot be
// written. To be called before anything is read, so that nothing is lost.
void check_outputs(const std::vector<std::string>& inputs, const std::vector<OutputFile>& outputs);

// Writes a result where --json and --html ask for it; of a training, the page has its metrics (report.h).
void write_result_if_asked(const Options& options, const AnyResult& result, const std::string& metrics = {});
// Everything for people goes through here: nothing if standard output belongs to JSON.
void print_text(const Options& options, const std::string& text);
// Both, of one result.
void present(const Options& options, const AnyResult& result, const std::string& metrics = {});

}  // namespace doppler
