#include "doppler/base/error.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::program {
namespace {

struct Use {
  const onnx::NodeProto* node;
  const Operator* rules;
  int slot;
};

// This is what is known of names before anything is inferred.
struct Uses {
  std::unordered_map<std::string, std::vector<Use>> of;  // by tensor
  std::unordered_set<std::string> produced;              // by a node
  std::unordered_set<std::string> in_bodies;             // read inside control flow
};

Uses collect_uses(const onnx::GraphProto& graph) {
  Uses uses;
  for (const onnx::NodeProto& node : graph.node()) {
    const Operator& rules = operator_of(node);
    for (int slot = 0; slot < node.input_size(); ++slot)
      if (!node.input(slot).empty()) uses.of[node.input(slot)].push_back({&node, &rules, slot});
    uses.produced.insert(node.output().begin(), node.output().end());
    const std::unordered_set<std::string> direct(node.input().begin(), node.input().end());
    for (const std::string& name : names_read(node))
      if (!direct.contains(name)) uses.in_bodies.insert(name);
  }
  for (const auto& output : graph.output()) uses.in_bodies.insert(output.name());
  return uses;
}

// In a scale or bias at most one dimension is larger than 1.
bool is_vector(const Shape& dims) {
  std::size_t large = 0;
  for (const Index size : dims) large += size != 1 ? 1 : 0;
  return large <= 1;
}

// In products of two tensors and in arithmetic it depends on what is offered whether a tensor is a weight.
bool is_weight_slot(const Use& use, const Shape& dims, const Uses& uses) {
  const WeightSlots& weights = use.rules->traits.weights;
  if (!weights.contains(use.slot)) return false;
  switch (weights.offer) {
    case WeightSlots::Offer::anything:
      return true;
    case WeightSlots::Offer::at_most_matrix:
      return dims.size() <= 2;
    case WeightSlots::Offer::matrix:
      return dims.size() == 2;
    case WeightSlots::Offer::vector_beside_data:
      return use.node->input_size() == 2 && is_vector(dims) && uses.produced.contains(use.node->input(1 - use.slot));
  }
  throw InternalError("weight slots: unknown offer; required one of WeightSlots::Offer");
}

bool passes_through(const Use& use) {
  return use.slot == 0 && use.rules->traits.passes_weights && use.node->output_size() > 0;
}

bool only_feeds_weight_slots(const std::string& input, const Shape& dims, const Uses& uses) {
  std::vector<std::string> waiting = {input};
  std::unordered_set<std::string> seen(waiting.begin(), waiting.end());
  bool any = false;
  while (!waiting.empty()) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    if (uses.in_bodies.contains(name)) return false;
    const auto found = uses.of.find(name);
    if (found == uses.of.end()) continue;
    for (const Use& use : found->second) {
      any = true;
      if (is_weight_slot(use, dims, uses)) continue;
      if (!passes_through(use)) return false;
      if (seen.insert(use.node->output(0)).second) waiting.push_back(use.node->output(0));
    }
  }
  return any;
}

}  // namespace

std::set<std::string> weight_inputs(const onnx::GraphProto& graph) {
  const Uses uses = collect_uses(graph);
  std::unordered_set<std::string> initialised;
  for (const auto& initializer : graph.initializer()) initialised.insert(initializer.name());
  std::set<std::string> weights;
  bool has_data = false;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialised.contains(input.name())) continue;
    const bool candidate =
        is_tensor(input.type()) && is_weight_type(element_of(input.type())) && is_complete(input.type());
    if (candidate && only_feeds_weight_slots(input.name(), *dims_of(input.type()), uses))
      weights.insert(input.name());
    else
      has_data = true;
  }
  // A model of weights alone would compute nothing; then the inputs are data after all.
  if (!has_data) weights.clear();
  return weights;
}

}  // namespace doppler::program
