#include "doppler/app/training_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/json_reader.h"

namespace doppler {
namespace {

// Reads a file of JSON objects, one per line, and returns the lines that `keep` wants. A last line without an end was
// cut short by a kill and is left out. Throws InputError naming the line if it is no object, or if `keep` throws.
std::string read_json_lines(const std::string& path, const char* required,
                            const std::function<bool(const nlohmann::json&)>& keep) {
  std::string kept;
  std::ifstream file(path);
  std::size_t number = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    ++number;
    try {
      const auto entry = formats::parse_json(path, line, {});
      if (!entry.is_object()) throw InputError("no object");
      if (keep(entry)) kept += line + "\n";
    } catch (const std::exception&) {
      throw InputError(fmt::format("{}: line {}: found '{}'; required {}", path, number, line, required));
    }
  }
  return kept;
}

bool is_missing_or_empty(const std::filesystem::path& path) {
  std::error_code none;
  return !std::filesystem::exists(path, none) ||
         (std::filesystem::is_regular_file(path, none) && std::filesystem::file_size(path, none) == 0);
}

// Says whether a training that was killed before its first checkpoint may have left this in its directory.
bool is_left_by_a_start(const std::filesystem::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (name == "lock" || is_temporary_file(name)) return true;
  if (name == "metrics.jsonl" || name == "measurements.jsonl") return is_missing_or_empty(entry.path());
  return name == "placements" && entry.is_directory() &&
         std::all_of(std::filesystem::directory_iterator(entry.path()), std::filesystem::directory_iterator(),
                     [](const auto& file) { return is_temporary_file(file.path().filename().string()); });
}

// Throws InputError unless the directory holds what a training makes before its first checkpoint and nothing else: to
// resume that is to begin. Anything else is not the directory of a training, or has lost its checkpoint.
void check_left_by_a_start(const std::string& path) {
  constexpr const char* kRequired = "required the directory of a training to resume";
  try {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (!is_left_by_a_start(entry))
        throw InputError(
            fmt::format("{}: found no checkpoint, but '{}'; {}", path, entry.path().filename().string(), kRequired));
  } catch (const std::filesystem::filesystem_error& error) {
    throw InputError(fmt::format("{}: found no checkpoint ({}); {}", path, error.code().message(), kRequired));
  }
}

}  // namespace

std::string placement_file_name(const std::string& task) {
  std::string name = task;
  for (char& letter : name)
    if (letter == '/' || letter == ' ') letter = '_';
  return name + ".json";
}

std::string metrics_of(const std::string& directory) {
  const std::string file = directory + "/metrics.jsonl";
  if (!std::filesystem::exists(file))
    throw InputError(fmt::format("{}: no metrics.jsonl; required the directory of 'doppler train --out'", directory));
  return read_json_lines(file, "a JSON object per line", [](const nlohmann::json&) { return true; });
}

TrainingRun::TrainingRun(std::string path, bool resume) : path_(std::move(path)) {
  std::error_code error;
  const auto has_checkpoint = [&] { return std::filesystem::exists(file("checkpoint"), error); };
  if (resume && !has_checkpoint()) check_left_by_a_start(path_);
  std::filesystem::create_directories(file("placements"), error);
  if (error) throw InputError(fmt::format("{}: {}; required a directory to write to", path_, error.message()));
  lock_ = std::make_unique<FileLock>(path_, file("lock"));
  if (!resume && has_checkpoint()) {
    if (has_learned())
      throw InputError(
          fmt::format("{}: holds a training; required --resume to go on with it, or another directory", path_));
    std::filesystem::remove(file("checkpoint"));  // Another training begins, which that one does not belong to.
  }
  resumes_ = has_checkpoint();
  if (!resumes_) metrics_.open(file("metrics.jsonl"), std::ios::trunc);
}

// A training that was killed before its first update has nothing that another one would lose.
bool TrainingRun::has_learned() const {
  if (!is_missing_or_empty(file("measurements.jsonl")) || !is_missing_or_empty(file("policy"))) return true;
  try {
    const PolicyFile saved = parse_policy(file("checkpoint"), read_file(file("checkpoint")));
    return formats::parse_json(path_, saved.training, {}).at("updates") != 0;
  } catch (const std::exception&) {
    return true;  // Whatever it is, it is not ours to remove.
  }
}

double TrainingRun::resume(Trainer& trainer) {
  const PolicyFile saved = parse_policy(file("checkpoint"), read_file(file("checkpoint")));
  trainer.restore(file("checkpoint"), saved);
  const auto made_before = [&](const nlohmann::json& entry) {
    const nlohmann::json& update = entry.at("update");
    if (!update.is_number_unsigned()) throw InputError("no number of an update");
    // A score of the last update is found again, in case that the training was interrupted before it was known.
    return update.get<std::uint64_t>() + (entry.contains("held_out") ? 1 : 0) < trainer.updates();
  };
  write_file_atomically(file("metrics.jsonl"),
                        read_json_lines(file("metrics.jsonl"), "an object with the number of its update", made_before));
  metrics_.open(file("metrics.jsonl"), std::ios::app);
  const auto best = formats::parse_json(path_, saved.training, {}).value("best_held_out", nlohmann::json());
  return best.is_number() ? best.get<double>() : Costs::kNever;
}

void TrainingRun::keep_measurements(MeasuredObjective& objective) {
  const std::string path = file("measurements.jsonl");
  const auto recall = [&](const nlohmann::json& entry) {
    Placement placement{entry.at("assignment").get<std::vector<DeviceId>>(), {}, {}};
    if (entry.contains("priority")) entry["priority"].get_to(placement.priority);
    try {
      verify(objective.problem(), placement);
    } catch (const InternalError& error) {
      throw InputError(error.what());
    }
    objective.recall(placement, entry.at("seconds").get<Seconds>());
    return true;
  };
  write_file_atomically(path, resumes_ ? read_json_lines(path, "a placement and its seconds", recall) : "");
  measurements_.open(path, std::ios::app);
  objective.on_run([this, path](const Placement& placement, Seconds time) {
    nlohmann::ordered_json line = {{"seconds", time}, {"assignment", placement.device_of_op}};
    if (!placement.priority.empty()) line["priority"] = placement.priority;
    measurements_ << line.dump() << "\n" << std::flush;
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
  if (report.result.best > 0) line["batch_best"] = report.result.best;
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
  write_line(nlohmann::ordered_json{{"update", update}, {"held_out", score}}.dump());
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
  write_file_atomically(file("placements/" + placement_file_name(name)), placement_to_json(placement, made));
}

}  // namespace doppler
