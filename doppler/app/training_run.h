#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "doppler/base/file_lock.h"
#include "doppler/learn/train/trainer.h"

namespace doppler {

// Returns the name of the file for the placement of a task; different tasks may have the same.
std::string placement_file_name(const std::string& task);

// Returns the whole lines of the metrics in the directory of a training that runs or has ended. Throws InputError if it is
// no such directory.
std::string metrics_of(const std::string& directory);

// The directory of a training:
//   checkpoint          everything needed to go on; replaced as a whole
//   policy              the parameters to use: the best on the held-out graphs, or the last
//   metrics.jsonl       one line per some updates, and per score on the held-out graphs
//   measurements.jsonl  every run of the system stage: {"placement": hash, "seconds": time}
//   placements/         the best placement found for each graph
//   lock                the process that trains here
class TrainingRun {
 public:
  // Makes the directory and keeps other processes out of it. Throws InputError if another process trains there; without
  // `resume`, if it holds a training that has learned something; with it, if it is not the directory of a training.
  TrainingRun(std::string path, bool resume);

  // Says whether there is a checkpoint to go on from: a training that was killed before its first has none, and begins
  // even where it is to resume.
  bool resumes() const { return resumes_; }

  // Continues the trainer from the checkpoint; metrics beyond it are cut off, as those updates will be made again, and
  // so will be a score of the last one.
  // Returns the best score on the held-out graphs so far, or infinity if there is none.
  double resume(Trainer& trainer);
  // Keeps every run of the system from now on, and recalls those of the training that is resumed.
  void keep_measurements(MeasuredObjective& objective);

  void log(const TrainingReport& report, Seconds seconds, std::uint64_t episodes);
  void log_held_out(std::uint64_t update, double score);
  void save_checkpoint(const Trainer& trainer, double best_held_out);
  void save_policy(const Trainer& trainer, const std::string& made_by);
  void save_placement(const std::string& name, const Placement& placement, const Provenance& made);

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  bool has_learned() const;
  void write_line(const std::string& text);

  std::string path_;
  bool resumes_ = false;
  std::unique_ptr<FileLock> lock_;
  std::ofstream metrics_, measurements_;
};

}  // namespace doppler
