#pragma once

#include <memory>
#include <vector>

#include "doppler/learn/train/task.h"

namespace doppler {

// Problems that are not trained on, to choose between parameter versions: training longer can make a policy worse on
// graphs it has not seen.
class HeldOut {
 public:
  explicit HeldOut(std::vector<std::unique_ptr<Task>> tasks);

  bool empty() const { return tasks_.empty(); }
  // The geometric mean, over the tasks, of the policy's zero-shot makespan over that of the best quick heuristic. Below
  // 1 it is better than they are. Throws OutOfTime.
  double score(Policy& policy, const Budget& budget = Budget::unlimited()) const;

 private:
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Seconds> reference_;  // Per task: the makespan of the best quick heuristic.
};

}  // namespace doppler
