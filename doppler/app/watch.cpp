#include "doppler/watch/watch.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/module.h"
#include "doppler/report.h"

namespace doppler {
namespace {

struct WatchFlags : Options {
  std::string path;
  std::uint16_t port = 0;
};

void run_watch(const WatchFlags& flags) {
  namespace fs = std::filesystem;
  if (!fs::exists(flags.path))
    throw InputError(
        fmt::format("{}: is not there; required the directory of a training, or the log of a service "
                    "(run --learn --log FILE)",
                    flags.path));
  const auto watch = reinterpret_cast<WatchFunction>(
      open_module({"doppler_watch", "doppler watch", "a build with libcpp-httplib-dev (make release)"},
                  library_directory(), kWatchSymbol));
  WatchOptions options;
  options.file = fs::is_directory(flags.path) ? flags.path + "/metrics.jsonl" : flags.path;
  options.page = live_page(flags.path);
  options.port = flags.port;
  options.stop = interruption();
  options.on_listening = [&](std::uint16_t port) {
    if (!flags.quiet)
      print_text(flags, fmt::format("http://localhost:{}/ shows {}; Ctrl-C ends it\n", port, flags.path));
  };
  keep_when_interrupted();
  if (!watch(options))
    throw InputError(fmt::format("--port: {} is taken; required a free one, or 0 for any", flags.port));
}

}  // namespace

void add_watch(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("watch", "Show a training or a service in a browser while it runs");
  auto flags = std::make_shared<WatchFlags>();
  verb->add_option("path", flags->path,
                   "The directory of 'doppler train --out', or the log of 'doppler run --learn --log'")
      ->required();
  verb->add_option("--port", flags->port, "On the loopback interface; 0: any that is free")->capture_default_str();
  verb->add_flag("-q,--quiet", flags->quiet, "Do not print the address");
  verb->footer("Example:\n  doppler train g.json --machine p100x4 --time 60s --out run & doppler watch run");
  verb->callback([flags] { run_watch(*flags); });
}

}  // namespace doppler
