#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/similar.h"

namespace doppler {
namespace {

struct Topic {
  std::string_view name, summary, text;
};

// What tables show, in a few lines each; the documents have the rest.
constexpr Topic kTopics[] = {
    {"bounds", "what 'lower bound' and 'gap' mean",
     "A lower bound is a time that no placement can beat; the gap is how far a makespan is above it. Its kind says "
     "which\n"
     "argument proves it:\n"
     "  work           all work over all devices\n"
     "  critical_path  the longest chain of ops, each on its fastest device\n"
     "  communication  the longest chain, given that an input is either moved or computed on the same device\n"
     "  interval       work that must fit between what comes before and after it\n"
     "  search         every placement was searched (--method exact)\n"
     "  contradiction  anything shorter forces ops together or apart until they no longer fit\n"},
    {"activity", "the strip beside each device",
     "The run from left to right, in 40 equal parts, each by the share of it that the device was busy:\n"
     "  ' ' not at all   '.' less than a third   '-' less than two thirds   '=' more   '#' all of it\n"},
    {"disciplines", "which ready op a free device takes (--discipline)",
     "  fifo      the one that was ready first; the published semantics\n"
     "  priority  the one of lowest rank; the device never waits\n"
     "  ordered   strictly by rank: the device waits for its next op\n"
     "  random    by a seeded coin\n"
     "Ranks are in the placement; where it has none, the longest remaining path goes first. docs/simulator.md has all "
     "rules.\n"},
    {"links", "how tensors move (--links)",
     "  free      pure delay, any number at a time\n"
     "  channels  transfers queue, as many at a time per direction as the link has channels\n"
     "  receiver  the destination copies them itself, between two of its ops\n"
     "  shared    devices of one memory hand over without copying: the latency alone\n"},
    {"objectives", "what placements are judged by (--objective)",
     "  exact     the makespan by the times as modelled\n"
     "  expected  the mean where times vary (--jitter), over the same draws for all placements\n"
     "  p95       what all but one run in twenty keep\n"
     "docs/objectives.md says why the fastest plan on paper is seldom the fastest in reality.\n"},
    {"flags", "what every verb takes: --json, --seed, --quiet",
     "  --json [FILE]  the result for programs, on standard output or in a file (docs/json.md). Verbs that find "
     "nothing\n"
     "                 beside what they write (completion, generate, help, lower, report, watch) take it and change\n"
     "                 nothing\n"
     "  --seed N       fixes every random choice; the same seed gives the same bytes. Verbs in which nothing is "
     "random\n"
     "                 take it and change nothing\n"
     "  --quiet        no progress, notes or warnings on standard error; errors, and the warning that a calibration\n"
     "                 predicts little, remain\n"},
    {"granularity", "what stays together on one device (--granularity)",
     "  op      nothing but what the graph groups\n"
     "  module  ops of one module, by names such as /layers.0/attention/MatMul; a module that computes something of "
     "its\n"
     "          own beside its modules, such as a residual sum, is whole\n"
     "  layer   ops of one repeated block, such as layers.0\n"},
};

std::string list_of_topics() {
  std::string text = "\nTopics of 'doppler help':\n";
  for (const Topic& topic : kTopics) text += fmt::format("  {:<12} {}\n", topic.name, topic.summary);
  return text;
}

void show_help(const CLI::App& command, const std::vector<std::string>& words) {
  const CLI::App* verb = &command;
  for (const std::string& word : words) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : verb->get_subcommands({})) {
      names.push_back(sub->get_name());
      if (sub->get_name() == word) next = sub;
    }
    if (next == nullptr && verb == &command)
      for (const Topic& topic : kTopics) {
        names.emplace_back(topic.name);
        if (topic.name == word) return write_file_atomically("-", topic.text);
      }
    if (next == nullptr)
      throw InputError(fmt::format("help: found '{}'; required a verb or a topic of 'doppler help'{}", word,
                                   did_you_mean(word, names)));
    verb = next;
  }
  // By the formatter: App::help() would describe the verb that was parsed, which is this one.
  std::string name = "doppler";
  for (const std::string& word : words) name += " " + word;
  write_file_atomically("-", verb->get_formatter()->make_help(verb, name, CLI::AppFormatMode::Normal) +
                                 (words.empty() ? list_of_topics() : ""));
}

}  // namespace

void add_help(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("help", "Explain a verb, or a word that tables use: bounds, activity, …");
  auto words = std::make_shared<std::vector<std::string>>();
  verb->add_option("words", *words, "A verb and its subcommand, or a topic; none: what there is");
  verb->footer("Example:\n  doppler help place\n  doppler help bounds");
  verb->callback([&command, words] { show_help(command, *words); });
}

}  // namespace doppler
