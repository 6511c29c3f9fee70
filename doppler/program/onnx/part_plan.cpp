#include "doppler/program/onnx/part_plan.h"

#include <algorithm>

namespace doppler::program {
namespace {

bool has_body(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& attribute) {
    return attribute.has_g() || attribute.graphs_size();
  });
}

class Planner {
 public:
  Planner(const std::string& where, const onnx::GraphProto& graph, const std::vector<std::uint32_t>& device_of_node)
      : graph_(graph), device_(device_of_node) {
    for (const auto& tensor : graph_.initializer()) parameters_.insert(tensor.name());
    for (const auto& tensor : graph_.sparse_initializer()) parameters_.insert(tensor.values().name());
    for (const auto& input : graph_.input()) parameters_.erase(input.name());  // Somebody may feed another value.
    std::unordered_set<std::string> made;
    for (const onnx::NodeProto& node : graph_.node()) made.insert(node.output().begin(), node.output().end());
    plan_.order = sort_nodes(where, graph_.node(), [&](const std::string& name) { return !made.contains(name); });
  }

  PartPlan plan() {
    find_shared();
    find_levels();
    join_pieces();
    return collect();
  }

 private:
  // Nodes that compute the same wherever and whenever they run. What the model gives back has one maker.
  void find_shared() {
    std::unordered_set<std::string> outputs;
    for (const auto& output : graph_.output()) outputs.insert(output.name());
    for (const int index : plan_.order) {
      const onnx::NodeProto& node = graph_.node(index);
      const Operator& op = operator_of(node);
      const std::vector<std::string> reads = names_read(node);
      const bool fixed = op.is == OperatorClass::constant ||
                         (!reads.empty() && op.is != OperatorClass::random && op.is != OperatorClass::unknown &&
                          !has_body(node) && std::all_of(reads.begin(), reads.end(), [&](const std::string& name) {
                            return parameters_.contains(name) || plan_.shared.contains(name);
                          }));
      const bool given_back = std::any_of(node.output().begin(), node.output().end(),
                                          [&](const std::string& name) { return outputs.contains(name); });
      if (!fixed || given_back) continue;
      for (const std::string& name : node.output())
        if (!name.empty()) plan_.shared.emplace(name, index);
    }
  }
  bool is_shared(const onnx::NodeProto& node) const {
    return std::any_of(node.output().begin(), node.output().end(),
                       [&](const std::string& name) { return plan_.shared.contains(name); });
  }

  void find_levels() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> part_at;  // by level and device
    part_of_.assign(static_cast<std::size_t>(graph_.node_size()), kNowhere);
    std::vector<std::uint32_t> level(part_of_.size(), 0), device = device_;
    std::unordered_map<std::string, int> producer;
    for (const int index : plan_.order) {
      const onnx::NodeProto& node = graph_.node(index);
      if (is_shared(node)) continue;
      const auto at = static_cast<std::size_t>(index);
      std::vector<std::size_t> before;
      for (const std::string& name : names_read(node))
        if (const auto found = producer.find(name); found != producer.end())
          before.push_back(static_cast<std::size_t>(found->second));
      // A shape is read where the tensor is, whose elements need not travel for it.
      if (operator_of(node).traits.fold_type != nullptr && !before.empty()) device[at] = device[before.front()];
      for (const std::size_t other : before)
        level[at] = std::max(level[at], level[other] + (device[other] == device[at] ? 0 : 1));
      for (const std::string& name : node.output())
        if (!name.empty()) producer.emplace(name, index);
      const auto [entry, added] = part_at.try_emplace({level[at], device[at]}, parts_.size());
      if (added) parts_.push_back({device[at], {}});
      part_of_[at] = entry->second;
      for (const std::size_t other : before)
        if (part_of_[other] != part_of_[at]) parts_[part_of_[other]].readers.insert(part_of_[at]);
    }
    // Part numbers follow the first node; edges go to higher levels, which is the order to go by.
    for (const auto& [key, part] : part_at) by_level_.push_back(part);
  }

  void join_pieces() {
    for (auto part = by_level_.rbegin(); part != by_level_.rend(); ++part) {
      Piece& piece = parts_[*part];
      std::set<std::size_t> readers;
      for (const std::size_t reader : piece.readers) readers.insert(home(reader));
      piece.readers = readers;
      if (readers.size() == 1 && parts_[*readers.begin()].device == piece.device) piece.joined = *readers.begin();
    }
  }
  std::size_t home(std::size_t part) const {
    while (parts_[part].joined != kNowhere) part = parts_[part].joined;
    return part;
  }

  PartPlan collect() {
    std::vector<std::uint32_t> level(parts_.size(), 0);
    std::vector<std::set<std::size_t>> before(parts_.size());
    for (const int index : plan_.order) {
      const std::size_t part = part_of_[static_cast<std::size_t>(index)];
      if (part == kNowhere) continue;
      for (const std::string& name : graph_.node(index).output())
        if (!name.empty()) plan_.maker[name] = home(part);
    }
    for (const int index : plan_.order) {
      const std::size_t part = part_of_[static_cast<std::size_t>(index)];
      if (part == kNowhere) continue;
      for (const std::string& name : names_read(graph_.node(index)))
        if (const auto found = plan_.maker.find(name); found != plan_.maker.end() && found->second != home(part))
          before[home(part)].insert(found->second);
    }
    std::vector<std::size_t> kept;
    for (const std::size_t part : by_level_)
      if (home(part) == part) kept.push_back(part);
    for (const std::size_t part : kept)
      for (const std::size_t other : before[part]) level[part] = std::max(level[part], level[other] + 1);
    std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(level[a], parts_[a].device) < std::pair(level[b], parts_[b].device);
    });
    std::vector<std::size_t> number(parts_.size(), kNowhere);
    for (std::size_t i = 0; i < kept.size(); ++i) number[kept[i]] = i;
    for (const std::size_t part : kept) {
      plan_.parts.push_back({parts_[part].device, level[part], {}, {}});
      for (const std::size_t other : before[part]) plan_.parts.back().before.push_back(number[other]);
      std::sort(plan_.parts.back().before.begin(), plan_.parts.back().before.end());
    }
    for (auto& [name, part] : plan_.maker) part = number[part];
    for (const int index : plan_.order)
      if (const std::size_t part = part_of_[static_cast<std::size_t>(index)]; part != kNowhere)
        plan_.parts[number[home(part)]].nodes.push_back(index);
    return std::move(plan_);
  }

  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  struct Piece {
    std::uint32_t device = 0;
    std::set<std::size_t> readers;  // parts that read its results
    std::size_t joined = kNowhere;  // the part that it is a piece of
  };

  const onnx::GraphProto& graph_;
  const std::vector<std::uint32_t>& device_;
  std::unordered_set<std::string> parameters_;
  std::vector<Piece> parts_;
  std::vector<std::size_t> part_of_, by_level_;
  PartPlan plan_;
};

}  // namespace

PartPlan plan_parts(const std::string& where, const onnx::GraphProto& graph,
                    const std::vector<std::uint32_t>& device_of_node) {
  return Planner(where, graph, device_of_node).plan();
}

}  // namespace doppler::program
