#pragma once

#include "doppler/program/onnx/reading.h"

namespace doppler::program {

// Which nodes of a main graph are in which part, producers first.
struct PartPlan {
  struct Part {
    std::uint32_t device = 0, level = 0;
    std::vector<int> nodes;           // producers first
    std::vector<std::size_t> before;  // parts whose results it reads, ascending
  };
  std::vector<Part> parts;                             // in an order in which they can run
  std::vector<int> order;                              // all nodes, producers first
  std::unordered_map<std::string, std::size_t> maker;  // of tensors that nodes of one part make: the part
  std::unordered_map<std::string, int> shared;         // of tensors that depend on parameters alone: the node
};

// Divides a graph by devices. A node goes to the next level where it reads what another device made, so that the nodes
// of one device and level need nothing of one another by way of a third; a part whose results one later part of its
// device reads alone becomes a piece of that one.
PartPlan plan_parts(const std::string& where, const onnx::GraphProto& graph,
                    const std::vector<std::uint32_t>& device_of_node);

}  // namespace doppler::program
