#pragma once

#include <fstream>
#include <string>

#include "doppler/learn/train/trainer.h"

namespace doppler {

// The directory of a training:
//   checkpoint          everything needed to go on; replaced as a whole
//   policy              the parameters to use: the best on the held-out graphs, or the last
//   metrics.jsonl       one line per some updates, and per score on the held-out graphs
//   measurements.jsonl  every run of the system stage: {"placement": hash, "seconds": time}
//   placements/         the best placement found for each graph
class TrainingRun {
 public:
  // Makes the directory. Throws InputError if it holds a training and `resume` is not asked for, or the other way
  // round.
  TrainingRun(std::string path, bool resume);

  // Continues the trainer from the checkpoint; metrics beyond it are cut off, as those updates will be made again.
  // Returns the best score on the held-out graphs so far, or infinity if there is none.
  double resume(Trainer& trainer);
  // Keeps every run of the system from now on, and recalls those of the training that is resumed.
  void keep_measurements(MeasuredObjective& objective, bool resume);

  void log(const TrainingReport& report, Seconds seconds, std::uint64_t episodes);
  void log_held_out(std::uint64_t update, double score);
  void save_checkpoint(const Trainer& trainer, double best_held_out);
  void save_policy(const Trainer& trainer, const std::string& made_by);
  void save_placement(const std::string& name, const Placement& placement, const Provenance& made);

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write_line(const std::string& text);

  std::string path_;
  std::ofstream metrics_, measurements_;
};

}  // namespace doppler
