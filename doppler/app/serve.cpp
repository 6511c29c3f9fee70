#include "doppler/app/serve.h"

#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/api/policies.h"
#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/bounds.h"
#include "doppler/engine/emulated/emulated_executor.h"
#include "doppler/report/plots.h"
#include "doppler/serve/service.h"

namespace doppler {
namespace {

Drift parse_drift(const std::string& text, const Machine& machine) {
  const auto wrong = [&] {
    return InputError(fmt::format("--drift: found '{}'; required device=factor@run, such as 0=2@100", text));
  };
  const std::size_t at = text.rfind('@');
  const std::size_t equals = text.rfind('=', at);
  if (at == std::string::npos || equals == std::string::npos || equals == 0) throw wrong();
  char* end = nullptr;
  const std::string factor = text.substr(equals + 1, at - equals - 1), run = text.substr(at + 1);
  Drift drift;
  drift.factor = std::strtod(factor.c_str(), &end);
  if (factor.empty() || *end != '\0' || !(drift.factor > 0) || drift.factor > 1e6) throw wrong();
  drift.run = std::strtoull(run.c_str(), &end, 10);
  if (run.empty() || *end != '\0' || run.find_first_not_of("0123456789") != std::string::npos) throw wrong();
  drift.device = machine.device_by_name(text.substr(0, equals));
  return drift;
}

// A file of one JSON object per line: every run, and every decision as it is made.
class ServiceLog {
 public:
  explicit ServiceLog(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_.open(path, std::ios::trunc);
    if (!file_) throw InputError(fmt::format("{}: cannot be written; required a place for the log", path));
  }
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
  void write(const nlohmann::ordered_json& line) {
    if (!file_.is_open()) return;
    file_ << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n" << std::flush;
    if (!file_) throw InputError(fmt::format("{}: cannot be written; required a disk with room", path_));
  }
  std::string path_;
  std::ofstream file_;
  std::size_t written_ = 0;
};

// Serves the graph, and writes the log and the progress meanwhile.
ServiceResult serve_logged(const LoadedProblem& loaded, Executor& executor, Deployment& deployment,
                           ServiceOptions service, const std::string& log_path, bool quiet) {
  ServiceLog log(log_path);
  ProgressLine progress(quiet, loaded.file.path, loaded.problem.graph().unitless());
  Seconds last = 0;
  std::uint64_t shown = 0;
  service.on_run = [&](std::size_t run, Seconds time, bool challenger) {
    log.run(run, time, challenger);
    last = time;
  };
  service.on_decisions = [&] {
    log.events(deployment);
    if (deployment.runs() == shown) return;
    shown = deployment.runs();
    progress.show_text("serve", fmt::format("run {} of {}, {}, {} changes", shown, service.runs,
                                            show_time(loaded, last), deployment.changes()));
  };
  ServiceResult result = run_service(executor, deployment, service);
  result.graph = loaded.file.path;
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
  serving(verb.add_option("--drift", options.drift, "Emulated: device=factor@run, slower from that run on"));
  serving(verb.add_option("--log", options.log, "Every run and every decision, as JSON lines"))->type_name("FILE");
  serving(verb.add_option("--plot", options.plot, "Time per run as an SVG picture"))->type_name("FILE");
  serving(verb.add_option("-o", options.placement, "The placement at the end"))->type_name("FILE");
}

void serve(const LoadedProblem& loaded, const ExecutorFlags& flags, const Placement& start, const ServeOptions& serving,
           const Options& options) {
  ServiceOptions service;
  if (!serving.drift.empty() && !flags.emulated()) throw InputError("--drift: required --devices emulated");
  const std::shared_ptr<Executor> executor = make_executor(loaded, flags, options);
  if (const auto emulated = std::dynamic_pointer_cast<EmulatedExecutor>(executor))
    service.slow_down = [emulated](DeviceId device, double factor) { emulated->slow_down(device, factor); };
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
  for (const std::string& text : serving.drift) service.drifts.push_back(parse_drift(text, loaded.problem.machine()));
  keep_when_interrupted();
  const ServiceResult result =
      serve_logged(loaded, *executor, deployment, std::move(service), serving.log, options.quiet);
  if (!serving.placement.empty()) write_incumbent(loaded, deployment, serving, options, deploying.policy->name());
  if (!serving.plot.empty()) write_file_atomically(serving.plot, plot_to_svg(service_plot(result)));
  present(options, result);
}

}  // namespace doppler
