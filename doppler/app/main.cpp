#include <algorithm>
#include <exception>
#include <sstream>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/memory.h"
#include "doppler/base/similar.h"
#include "doppler/base/version.h"

namespace doppler {
namespace {

std::vector<std::string> verb_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb : command.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

// Throws InputError unless a word names one of the verbs of a command, or is a flag.
void check_verb(const CLI::App& command, const std::vector<std::string>& arguments, std::size_t at) {
  const std::vector<std::string> names = verb_names(command);
  if (names.empty()) return;
  const std::string path = at == 0 ? "doppler" : "doppler " + command.get_name();
  const std::string where = at == 0 ? "" : command.get_name() + ": ";
  if (arguments.size() <= at)
    throw InputError(fmt::format("{}no {}; required one of {}; try '{} --help'", where, at == 0 ? "verb" : "subcommand",
                                 fmt::join(names, ", "), path));
  const std::string& word = arguments[at];
  if (word.starts_with('-')) return;
  if (std::find(names.begin(), names.end(), word) == names.end())
    throw InputError(fmt::format("{}found '{}'; required one of {}{}; try '{} --help'", where, word,
                                 fmt::join(names, ", "), did_you_mean(word, names), path));
  check_verb(*command.get_subcommand(word), arguments, at + 1);
}

// The verb that was parsed, with its subcommand if it has one.
const CLI::App* parsed_verb(const CLI::App& command) {
  const CLI::App* verb = &command;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return verb;
}

// Says what is wrong with a command line. A flag that nobody knows is the reason for words too many, and often for one
// that is missing.
[[noreturn]] void refuse_words(const CLI::App& command, const CLI::ParseError& error) {
  const CLI::App* verb = parsed_verb(command);
  const auto is = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  const bool too_many = is(CLI::ExitCodes::ExtrasError), missing = is(CLI::ExitCodes::RequiredError);
  const std::vector<std::string> left = too_many || missing ? command.remaining(true) : std::vector<std::string>();
  const auto is_flag = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  const auto flag = std::find_if(left.begin(), left.end(), is_flag);
  if (flag != left.end()) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    const std::string word = flag->substr(0, flag->find('='));
    throw InputError(fmt::format("{}: found '{}', which is no flag of it; required one of 'doppler help {}'{}",
                                 verb->get_name(), word, verb->get_name(), did_you_mean(word, flags)));
  }
  if (too_many && !left.empty())
    throw InputError(fmt::format("{}: found '{}' after all that it takes; try 'doppler help {}'", verb->get_name(),
                                 left.front(), verb->get_name()));
  throw InputError(fmt::format("{}; try --help", error.what()));
}

void add_verbs(CLI::App& command) {
  add_info(command);
  add_place(command);
  add_compare(command);
  add_simulate(command);
  add_why(command);
  add_diff(command);
  add_split(command);
  add_run(command);
  add_calibrate(command);
  add_validate(command);
  add_train(command);
  add_machines(command);
  add_generate(command);
  add_lower(command);
  add_explain(command);
  add_report(command);
  add_watch(command);
  add_help(command);
  add_completion(command);
}

// Every verb takes --json, --seed and --quiet, so that a script can say them to all; `doppler help flags` says so. Where
// a verb has no result beside what it writes, or nothing that is random, they change nothing.
void add_common_flags(CLI::App& command) {
  for (CLI::App* verb : command.get_subcommands({})) {
    add_common_flags(*verb);
    if (!verb->get_subcommands({}).empty()) continue;
    if (verb->get_option_no_throw("--json") == nullptr)
      verb->add_flag("--json")->description("Changes nothing: what this verb writes is all that it finds");
    if (verb->get_option_no_throw("--seed") == nullptr)
      verb->add_option("--seed", "Changes nothing: nothing here is random")->check(whole_number())->type_name("UINT");
    if (verb->get_option_no_throw("--quiet") == nullptr)
      verb->add_flag("-q,--quiet")->description("No progress, notes or warnings on standard error");
  }
}

void run(std::vector<std::string> arguments) {
  CLI::App command(
      "Places the operations of a dataflow graph on devices so that an asynchronous runtime finishes early.");
  command.name("doppler");
  command.require_subcommand(1);
  command.set_version_flag("--version", fmt::format("doppler {}", version()));
  command.footer("Example:\n  doppler compare examples/blocks.json --machine p100x4 --time 2s");
  add_verbs(command);
  add_common_flags(command);
  refuse_flags_as_values(command);
  check_verb(command, arguments, 0);
  arguments = settle_json_flag(command, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    command.parse(std::move(arguments));
  } catch (const CLI::Success& help) {  // --help, --version
    std::ostringstream text;
    command.exit(help, text, text);
    write_file_atomically("-", text.str());
  } catch (const CLI::ParseError& error) {
    refuse_words(command, error);
  }
}

std::string describe_out_of_memory(Bytes needed) {
  return fmt::format("out of memory: needed about {}, limit {}", format_bytes(needed), format_bytes(memory_limit()));
}

int fail(ExitCode code, const std::string& text) {
  complain(text);
  return code;
}

int main_with_errors_as_codes(int argc, char** argv) {
  constexpr Bytes kThread = 8 << 20;  // what the stack of a thread takes, usually
  try {
    settle_standard_streams();
    watch_for_interrupt();
    run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
    return interrupted() ? fail(kInterrupted, "interrupted; this is the best so far") : kOk;
  } catch (const InputError& error) {
    return fail(kBadInput, error.what());
  } catch (const RunCancelled&) {
    return fail(kInterrupted, kNothingToKeep);
  } catch (const InfeasibleError& error) {  // Who is interrupted has not tried everything.
    return interrupted() ? fail(kInterrupted, kNothingToKeep) : fail(kInfeasible, error.what());
  } catch (const OutOfMemory& error) {
    return fail(kOutOfMemory, describe_out_of_memory(error.needed));
  } catch (const std::bad_alloc&) {
    return fail(kOutOfMemory, describe_out_of_memory(std::max(memory_in_use(), memory_limit())));
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory)
      return fail(kOutOfMemory, describe_out_of_memory(memory_in_use() + kThread) + "; required room for a thread");
    return fail(kOurBug, fmt::format("{}; this is a bug in doppler, please report it", error.what()));
  } catch (const std::exception& error) {
    return fail(kOurBug, fmt::format("{}; this is a bug in doppler, please report it", error.what()));
  }
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) { return doppler::main_with_errors_as_codes(argc, argv); }
