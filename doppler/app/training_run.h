#pragma once

#include <fstream>
#include <string>

#include "doppler/learn/train/trainer.h"

namespace doppler {

// The directory of a training:
//   checkpoint     everything needed to go on; replaced as a whole
//   policy         the parameters to use: the best on the validation graphs, or the last
//   metrics.jsonl  one line per some updates, and per validation
//   measurements.jsonl  every run of the system stage: {"placement": hash, "seconds": time}
//   placements/    the best placement found for each graph
class TrainingRun {
 public:
  // Makes the directory. Throws InputError if it holds a training and `resume` is not asked for, or the other way round.
  TrainingRun(std::string path, bool resume);

  // Continues the trainer from the checkpoint; metrics beyond it are cut off, as those updates will be made again.
  // Returns the best validation score so far; infinity: none.
  double resume(Trainer& trainer);
  // Every run of the system is kept from now on; those of the training that is resumed are recalled.
  void keep_measurements(MeasuredObjective& objective, bool resume);

  void log(const TrainingReport& report, Seconds seconds, std::uint64_t episodes);
  void log_validation(std::uint64_t update, double score);
  void save_checkpoint(const Trainer& trainer, double best_validation);
  void save_policy(const Trainer& trainer, const std::string& made_by);
  void save_placement(const std::string& name, const Placement& placement, const Provenance& made);

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write_line(const std::string& text);

  std::string path_;
  std::ofstream metrics_, measurements_;
};

}  // namespace doppler
