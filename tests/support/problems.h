#pragma once

#include <string>
#include <vector>

#include "doppler/method.h"
#include "doppler/sim/simulator.h"

namespace doppler::test {

struct Edge {
  OpId producer, consumer;
  Seconds transfer = 0;
  Bytes bytes = 0;
};

// Ops with one time on every device and a tensor of its own for every edge.
inline Graph graph_of(const std::vector<Seconds>& times, const std::vector<Edge>& edges) {
  GraphBuilder builder("test");
  for (const Seconds time : times) {
    OpSpec op;
    op.explicit_times["*"] = time;
    builder.add_op(std::move(op));
  }
  for (const Edge& edge : edges)
    builder.add_consumer(builder.add_tensor(edge.producer, edge.bytes, edge.transfer), edge.consumer);
  return std::move(builder).build();
}

// Equal devices and free links; 0 bytes: unlimited memory.
inline Machine machine_of(const std::vector<std::string>& types, Bytes memory = 0, unsigned slots = 1) {
  std::vector<Device> devices;
  for (const std::string& type : types) {
    Device device;
    device.name = "d" + std::to_string(devices.size());
    device.type = type;
    device.memory = memory;
    device.slots = slots;
    devices.push_back(std::move(device));
  }
  return Machine("test", devices, std::vector<Link>(devices.size() * devices.size()));
}

inline Rules rules_of(Discipline discipline) {
  Rules rules;
  rules.discipline = discipline;
  return rules;
}

// A method by exact makespans.
inline Proposal run(Proposal (*method)(const Problem&, Objective&, const MethodOptions&), const Problem& problem,
                    const MethodOptions& options) {
  ExactObjective objective(problem);
  return method(problem, objective, options);
}
inline Result place(const Problem& problem, const Method& method, const MethodOptions& options,
                    const LowerBound& bound) {
  ExactObjective objective(problem);
  return doppler::place(objective, method, options, bound);
}
inline Timeline simulate(const Problem& problem, const Placement& placement) {
  return Simulator(problem).simulate(placement);
}
inline Seconds makespan(const Problem& problem, const Proposal& proposal) {
  return Simulator(problem).makespan(proposal.placement);
}

// The example of Topcuoglu, Hariri and Wu (2002), figure 2 and table 2: ten tasks, three processors.
inline Graph topcuoglu_graph() {
  const double times[10][3] = {{14, 16, 9}, {13, 19, 18}, {11, 13, 19}, {13, 8, 17},  {12, 13, 10},
                               {13, 16, 9}, {7, 15, 11},  {5, 11, 14},  {18, 12, 20}, {21, 7, 16}};
  const Edge edges[] = {{0, 1, 18}, {0, 2, 12}, {0, 3, 9},  {0, 4, 11}, {0, 5, 14}, {1, 7, 19}, {1, 8, 16}, {2, 6, 23},
                        {3, 7, 27}, {3, 8, 23}, {4, 8, 13}, {5, 7, 15}, {6, 9, 17}, {7, 9, 11}, {8, 9, 13}};
  GraphBuilder builder("topcuoglu");
  for (const auto& row : times) {
    OpSpec op;
    op.explicit_times = {{"p1", row[0]}, {"p2", row[1]}, {"p3", row[2]}};
    builder.add_op(std::move(op));
  }
  for (const Edge& edge : edges)
    builder.add_consumer(builder.add_tensor(edge.producer, 0, edge.transfer), edge.consumer);
  return std::move(builder).build();
}

}  // namespace doppler::test
