#include <algorithm>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/version.h"

namespace doppler {
namespace {

constexpr int kOk = 0, kBadInput = 2, kInfeasible = 3, kOurBug = 70;

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

void run(CLI::App& command, std::vector<std::string> arguments) {
  check_verb(command, arguments);
  arguments = settle_json_flag(std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  command.parse(std::move(arguments));
}

int fail(int code, const std::string& text) {
  complain(text);
  return code;
}

int main_with_errors_as_codes(int argc, char** argv) {
  CLI::App command(
      "Places the operations of a dataflow graph on devices so that an asynchronous runtime finishes early.");
  command.name("doppler");
  command.require_subcommand(1);
  command.set_version_flag("--version", fmt::format("doppler {}", version()));
  command.footer("Example:\n  doppler compare examples/blocks.json --machine p100x4 --time 2s");
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
  watch_for_interrupt();
  try {
    run(command, std::vector<std::string>(argv + 1, argv + argc));
    return kOk;
  } catch (const CLI::Success& help) {  // --help, --version
    return command.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, fmt::format("{}; try --help", error.what()));
  } catch (const InputError& error) {
    return fail(kBadInput, error.what());
  } catch (const InfeasibleError& error) {
    return fail(kInfeasible, error.what());
  } catch (const std::exception& error) {
    return fail(kOurBug, fmt::format("{}; this is a bug in doppler, please report it", error.what()));
  }
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) { return doppler::main_with_errors_as_codes(argc, argv); }
