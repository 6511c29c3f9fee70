#pragma once

#include <memory>

#include "doppler/base/rng.h"
#include "doppler/learn/train/task.h"

namespace doppler {

// What a stream of generated tasks varies over; every range is drawn from log-uniformly.
struct GeneratedTaskOptions {
  OpId fewest_ops = 30, most_ops = 2000;
  DeviceId fewest_devices = 2, most_devices = 16;
  double least_communication = 0.1,
         most_communication = 50;  // Transfer time over compute time, as in graph/generate.h.
  double heterogeneous = 0.3;      // The share of the machines with unequal speeds and links.
  bool mixed_disciplines = true;   // Fifo half of the time, otherwise priority or ordered; if false, always `rules`.
  Rules rules;
};

// Makes a random graph (layered, random, series-parallel, a chain of blocks, or a chain with parameters) on a random
// machine.
std::unique_ptr<Task> generate_task(const GeneratedTaskOptions& options, Rng rng);

}  // namespace doppler
