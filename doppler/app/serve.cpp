#include "doppler/app/serve.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/api/policies.h"
#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/file_lock.h"
#include "doppler/bounds.h"
#include "doppler/report/plots.h"
#include "doppler/serve/service.h"

namespace doppler {
namespace {

// A file of one JSON object per line: every run, and every decision as it is made.
class ServiceLog {
 public:
  // Begins anew, or goes on after what a state of the deployment has behind it.
  ServiceLog(const std::string& path, const Deployment& deployment, std::optional<std::uint64_t> kept_bytes)
      : path_(path), written_(kept_bytes ? deployment.events().size() : 0), bytes_(kept_bytes.value_or(0)) {
    if (path.empty()) return;
    // A state without a log behind it knows nothing of the file: what stands there is somebody's.
    if (bytes_ > 0) cut(bytes_);
    file_.open(path, kept_bytes ? std::ios::app : std::ios::trunc);
    if (!file_) throw InputError(fmt::format("{}: cannot be written; required a place for the log", path));
    bytes_ = std::filesystem::file_size(path);
  }
  std::uint64_t bytes() const { return bytes_; }
  void run(std::size_t number, Seconds time, bool challenger) {
    write({{"run", number}, {"role", challenger ? "challenger" : "incumbent"}, {"seconds", time}});
  }
  void events(const Deployment& deployment) {
    for (; written_ < deployment.events().size(); ++written_) {
      const DeploymentEvent& event = deployment.events()[written_];
      nlohmann::ordered_json line = {{"run", event.run}, {"event", to_string(event.kind)}, {"text", event.text}};
      for (const auto& [name, value] : event.numbers) line[name] = value;
      write(line);
    }
  }

 private:
  // Runs after the state was written are served again, and so are their lines.
  void cut(std::uint64_t bytes) const {
    std::error_code failed;
    const std::uint64_t found = std::filesystem::file_size(path_, failed);
    if (failed || found < bytes)
      throw InputError(fmt::format("--log: found {} bytes in '{}'; required the log of the state, of at least {} bytes",
                                   failed ? 0 : found, path_, bytes));
    std::filesystem::resize_file(path_, bytes, failed);
    if (failed) throw InputError(fmt::format("{}: {}; required a log that can be written", path_, failed.message()));
  }
  void write(const nlohmann::ordered_json& line) {
    if (!file_.is_open()) return;
    const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    file_ << text << std::flush;
    bytes_ += text.size();
    if (!file_) throw InputError(fmt::format("{}: cannot be written; required a disk with room", path_));
  }
  std::string path_;
  std::ofstream file_;
  std::size_t written_ = 0;
  std::uint64_t bytes_ = 0;
};

// The file that has what the deployment knows: written at every decision, and at least once a second between two runs.
class ServiceState {
 public:
  explicit ServiceState(std::string path) : path_(std::move(path)) {
    if (!path_.empty()) lock_.emplace(path_, path_ + ".lock");
  }
  // Takes up what an earlier service left there and returns how long its log was; nothing if there was none.
  std::optional<std::uint64_t> resume(Deployment& deployment, std::size_t runs) {
    if (path_.empty() || !std::filesystem::exists(path_)) return std::nullopt;
    const std::uint64_t log_bytes = deployment.restore(path_, read_file(path_));
    if (deployment.runs() >= runs)
      throw InputError(fmt::format("--runs: found {}; required more than the {} runs that '{}' has behind it", runs,
                                   deployment.runs(), path_));
    decisions_ = deployment.events().size();
    return log_bytes;
  }
  void keep(const Deployment& deployment, std::uint64_t log_bytes, bool at_once) {
    constexpr auto kLongest = std::chrono::seconds(1);
    const auto now = std::chrono::steady_clock::now();
    if (path_.empty() || (!at_once && deployment.events().size() == decisions_ && now - last_ < kLongest)) return;
    write_file_atomically(path_, deployment.save(log_bytes));
    decisions_ = deployment.events().size();
    last_ = std::chrono::steady_clock::now();
  }

 private:
  std::string path_;
  std::optional<FileLock> lock_;  // two services with one state would cut one another's log
  std::size_t decisions_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Serves the graph, and writes the log, the state and the progress meanwhile.
ServiceResult serve_logged(const LoadedProblem& loaded, Executor& executor, Deployment& deployment,
                           ServiceOptions service, const ServeOptions& files, bool quiet) {
  ServiceState state(files.state);
  const std::optional<std::uint64_t> kept_bytes = state.resume(deployment, service.runs);
  ServiceLog log(files.log, deployment, kept_bytes);
  ProgressLine progress(quiet, loaded.file.path, loaded.problem.graph().unitless());
  Seconds last = 0;
  std::uint64_t shown = 0;
  service.on_run = [&](std::size_t run, Seconds time, bool challenger) {
    log.run(run, time, challenger);
    last = time;
  };
  service.on_decisions = [&] {
    log.events(deployment);
    state.keep(deployment, log.bytes(), false);
    if (deployment.runs() == shown) return;
    shown = deployment.runs();
    progress.show_text("serve", fmt::format("run {} of {}, {}, {} changes", shown, service.runs,
                                            show_time(loaded, last), deployment.changes()));
  };
  ServiceResult result = run_service(executor, deployment, service);
  log.events(deployment);
  if (!deployment.running()) state.keep(deployment, log.bytes(), true);
  result.graph = loaded.file.path;
  if (result.times.empty() && result.ended) throw InfeasibleError(*result.ended);
  if (result.times.empty()) throw RunCancelled("run: interrupted before the first run had ended");
  return result;
}

void write_incumbent(const LoadedProblem& loaded, const Deployment& deployment, const ServeOptions& serving,
                     const Options& options, std::string_view policy) {
  Provenance made = provenance_of(loaded.problem, loaded.file.path);
  made.method = made.winner = policy;
  made.budget = fmt::format("{} runs", deployment.runs());
  made.seed = options.seed;
  made.lower_bound = lower_bound(loaded.problem).value;
  made.makespan = ExactObjective(loaded.problem).value(deployment.incumbent());
  write_file_atomically(serving.placement, placement_to_json(deployment.incumbent(), made));
}

}  // namespace

void add_serve_flags(CLI::App& verb, ServeOptions& options) {
  CLI::Option* learn = verb.add_flag("--learn", options.learn, "Serve the graph and improve its placement meanwhile");
  const auto serving = [&](CLI::Option* option) { return option->needs(learn)->group("With --learn"); };
  serving(verb.add_option("--runs", options.runs, "How many")->check(CLI::Range(1u, 1'000'000'000u)))
      ->capture_default_str();
  serving(verb.add_option("--explore", options.explore, "Share of the runs that may try a challenger")
              ->check(CLI::Range(0.0, 1.0)))
      ->capture_default_str();
  serving(verb.add_option("--max-slowdown", options.max_slowdown,
                          "A challenger is given up after one run that takes so many times as long as usual")
              ->check(CLI::Range(1.0, 1000.0)))
      ->capture_default_str();
  serving(verb.add_option("--search-time", options.search_time, "To look for a challenger, between two runs"))
      ->type_name("TIME")
      ->capture_default_str();
  serving(verb.add_option("--checkpoint", options.checkpoint, "The policy that suggests challengers; default: shipped"))
      ->type_name("PATH");
  serving(verb.add_option("--drift", options.drift,
                          "Emulated, from a run on: device=factor@run, device-device=factor@run (a link), "
                          "device=gone@run, device=back@run"));
  serving(verb.add_option("--state", options.state,
                          "What was learned, kept up to date; a service that finds it goes on from there"))
      ->type_name("FILE");
  serving(verb.add_option("--log", options.log, "Every run and every decision, as JSON lines"))->type_name("FILE");
  serving(verb.add_option("--plot", options.plot, "Time per run as an SVG picture"))->type_name("FILE");
  serving(verb.add_option("-o", options.placement, "The placement at the end"))->type_name("FILE");
}

void serve(const LoadedProblem& loaded, const ExecutorFlags& flags, const Placement& start, const ServeOptions& serving,
           const Options& options) {
  ServiceOptions service;
  const std::shared_ptr<Executor> executor = make_executor(loaded, flags, options);
  if (!serving.drift.empty() && executor->changeable() == nullptr)
    throw InputError("--drift: required --devices emulated");
  DeploymentOptions deploying;
  deploying.explore_share = serving.explore;
  deploying.max_slowdown = serving.max_slowdown;
  deploying.search_time = parse_duration(serving.search_time, "--search-time");
  deploying.policy = load_policy(serving.checkpoint, {.samples = 16});
  deploying.seed = options.seed;
  deploying.stop = interruption();
  Deployment deployment(loaded.problem, start, deploying);
  service.runs = serving.runs;
  service.stop = interruption();
  for (const std::string& text : serving.drift) {
    service.drifts.push_back(parse_drift(text, loaded.problem.machine()));
    if (service.drifts.back().run >= serving.runs && !options.quiet)
      complain(fmt::format("warning: --drift {} never happens: --runs is {}", text, serving.runs));
  }
  keep_when_interrupted();
  const ServiceResult result = serve_logged(loaded, *executor, deployment, std::move(service), serving, options.quiet);
  if (!serving.placement.empty()) write_incumbent(loaded, deployment, serving, options, deploying.policy->name());
  if (!serving.plot.empty()) write_file_atomically(serving.plot, plot_to_svg(service_plot(result)));
  present(options, result);
  if (result.ended) throw InfeasibleError(*result.ended);
}

}  // namespace doppler
