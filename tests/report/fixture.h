#pragma once

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// a on device 0 from 0 to 2; its tensor (8 bytes) moves until 3; b on device 1 from 3 to 4. Written by hand,
// so that reports are tested without a simulator.
inline Graph two_op_graph() {
  GraphBuilder builder("two_ops");
  builder.add_op({.name = "a", .kind = "matmul"});
  builder.add_op({.name = "b\"\n"});
  builder.add_consumer(builder.add_tensor(0, 8), 1);
  return std::move(builder).build();
}

// The same graph with times, so that it is a problem.
inline Problem two_op_problem() {
  GraphBuilder builder("two_ops");
  builder.add_op({.name = "a", .kind = "matmul", .explicit_times = {{"*", 2}}});
  builder.add_op({.name = "b\"\n", .explicit_times = {{"*", 1}}});
  builder.add_consumer(builder.add_tensor(0, 8), 1);
  return Problem(std::move(builder).build(), uniform_machine(2));
}

inline Timeline two_op_timeline() {
  Timeline timeline;
  timeline.makespan = 4;
  timeline.executions = {{.op = 0, .device = 0, .slot = 0, .ready = 0, .start = 0, .end = 2},
                         {.op = 1, .device = 1, .slot = 0, .ready = 3, .start = 3, .end = 4}};
  timeline.transfers = {{.tensor = 0, .src = 0, .dst = 1, .channel = 0, .queued = 2, .start = 2, .end = 3}};
  timeline.peak_memory = {8, 8};
  timeline.busy = {2, 1};
  return timeline;
}

}  // namespace doppler
