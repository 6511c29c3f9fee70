#include "doppler/app/training_run.h"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/file.h"

namespace doppler {

TrainingRun::TrainingRun(std::string path, bool resume) : path_(std::move(path)) {
  std::error_code error;
  const bool exists = std::filesystem::exists(file("checkpoint"), error);
  if (exists && !resume)
    throw InputError(
        fmt::format("{}: holds a training; required --resume to go on with it, or another directory", path_));
  if (!exists && resume)
    throw InputError(fmt::format("{}: found no checkpoint; required the directory of a training to resume", path_));
  std::filesystem::create_directories(file("placements"), error);
  if (error) throw InputError(fmt::format("{}: {}; required a directory to write to", path_, error.message()));
  if (!resume) metrics_.open(file("metrics.jsonl"), std::ios::trunc);
}

double TrainingRun::resume(Trainer& trainer) {
  const PolicyFile saved = parse_policy(file("checkpoint"), read_file(file("checkpoint")));
  trainer.restore(file("checkpoint"), saved);
  std::string kept;
  std::ifstream old(file("metrics.jsonl"));
  for (std::string line; std::getline(old, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);  // The last line may be cut short.
    if (entry.is_object() && entry.value("update", trainer.updates()) < trainer.updates()) kept += line + "\n";
  }
  write_file_atomically(file("metrics.jsonl"), kept);
  metrics_.open(file("metrics.jsonl"), std::ios::app);
  const auto best = nlohmann::json::parse(saved.training, nullptr, false).value("best_validation", nlohmann::json());
  return best.is_number() ? best.get<double>() : Costs::kNever;
}

void TrainingRun::keep_measurements(MeasuredObjective& objective, bool resume) {
  const std::string path = file("measurements.jsonl");
  std::string kept;
  std::ifstream old;
  if (resume) old.open(path);
  for (std::string line; std::getline(old, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);  // The last line may be cut short.
    if (!entry.is_object() || !entry.contains("placement") || !entry.contains("seconds")) continue;
    try {
      objective.recall(std::stoull(entry.at("placement").get<std::string>(), nullptr, 16),
                       entry.at("seconds").get<Seconds>());
    } catch (const std::exception&) {
      throw InputError(fmt::format("{}: found '{}'; required a placement's hash and its seconds", path, line));
    }
    kept += line + "\n";
  }
  write_file_atomically(path, kept);
  measurements_.open(path, std::ios::app);
  objective.on_run([this, path](std::uint64_t key, Seconds time) {
    measurements_ << nlohmann::ordered_json{{"placement", fmt::format("{:016x}", key)}, {"seconds", time}}.dump()
                  << "\n"
                  << std::flush;
    if (!measurements_) throw InputError(fmt::format("{}: cannot be written; required a disk with room", path));
  });
}

void TrainingRun::write_line(const std::string& text) {
  metrics_ << text << "\n" << std::flush;
  if (!metrics_)
    throw InputError(fmt::format("{}: cannot be written; required a disk with room", file("metrics.jsonl")));
}

void TrainingRun::log(const TrainingReport& report, Seconds seconds, std::uint64_t episodes) {
  nlohmann::ordered_json line;
  line["update"] = report.update;
  line["episodes"] = episodes;
  line["seconds"] = seconds;
  line["stage"] = to_string(report.stage);
  line["task"] = report.task;
  if (report.stage == Stage::simulation || report.result.mean > 0) line["mean"] = report.result.mean;
  if (report.stage == Stage::system) {
    line["runs"] = report.runs;
    line["refused"] = report.refused;
  }
  if (std::isfinite(report.best)) line["best"] = report.best;
  if (report.bound > 0) line["lower_bound"] = report.bound;
  if (report.bound > 0 && std::isfinite(report.best)) line["gap"] = report.best / report.bound - 1;
  line["entropy"] = report.result.entropy;
  if (report.stage == Stage::imitation) line["log_probability"] = report.result.log_probability;
  for (const Agreement& agreement : report.result.agreement)
    line[fmt::format("{}_agreement", agreement.part)] = agreement.share;
  line["gradient_norm"] = report.result.gradient_norm;
  write_line(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void TrainingRun::log_held_out(std::uint64_t update, double score) {
  write_line(nlohmann::ordered_json{{"update", update}, {"validation", score}}.dump());
}

void TrainingRun::save_checkpoint(const Trainer& trainer, double best_held_out) {
  PolicyFile state = trainer.save(best_held_out);
  state.made_by = "checkpoint of a training";
  write_file_atomically(file("checkpoint"), policy_to_bytes(state));
}

void TrainingRun::save_policy(const Trainer& trainer, const std::string& made_by) {
  PolicyFile policy = file_of(trainer.policy());
  policy.made_by = made_by;
  write_file_atomically(file("policy"), policy_to_bytes(policy));
}

void TrainingRun::save_placement(const std::string& name, const Placement& placement, const Provenance& made) {
  std::string safe = name;
  for (char& letter : safe)
    if (letter == '/' || letter == ' ') letter = '_';
  write_file_atomically(file("placements/" + safe + ".json"), placement_to_json(placement, made));
}

}  // namespace doppler
