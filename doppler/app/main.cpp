#include <algorithm>
#include <exception>
#include <sstream>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/memory.h"
#include "doppler/base/version.h"

namespace doppler {
namespace {

std::string verb_names(const CLI::App& command) {
  std::string names;
  for (const CLI::App* verb : command.get_subcommands({}))
    names += fmt::format("{}{}", names.empty() ? "" : ", ", verb->get_name());
  return names;
}

void check_verb(const CLI::App& command, const std::vector<std::string>& arguments) {
  if (arguments.empty())
    throw InputError(fmt::format("no verb; required one of {}; try 'doppler --help'", verb_names(command)));
  const std::string& word = arguments.front();
  const auto is_it = [&](const CLI::App* verb) { return verb->get_name() == word; };
  if (!word.starts_with('-') && command.get_subcommands(is_it).empty())
    throw InputError(fmt::format("found '{}'; required one of {}; try 'doppler --help'", word, verb_names(command)));
}

void add_verbs(CLI::App& command) {
  add_info(command);
  add_place(command);
  add_compare(command);
  add_simulate(command);
  add_run(command);
  add_calibrate(command);
  add_validate(command);
  add_train(command);
  add_generate(command);
  add_lower(command);
  add_explain(command);
}

void run(std::vector<std::string> arguments) {
  CLI::App command(
      "Places the operations of a dataflow graph on devices so that an asynchronous runtime finishes early.");
  command.name("doppler");
  command.require_subcommand(1);
  command.set_version_flag("--version", fmt::format("doppler {}", version()));
  command.footer("Example:\n  doppler compare examples/blocks.json --machine p100x4 --time 2s");
  add_verbs(command);
  refuse_flags_as_values(command);
  check_verb(command, arguments);
  arguments = settle_json_flag(command, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    command.parse(std::move(arguments));
  } catch (const CLI::Success& help) {  // --help, --version
    std::ostringstream text;
    command.exit(help, text, text);
    write_file_atomically("-", text.str());
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
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, fmt::format("{}; try --help", error.what()));
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
