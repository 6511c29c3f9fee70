#include "doppler/graph/formats/dnn_partitioning.h"

#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"

namespace doppler {
namespace {

using formats::Json;
using formats::JsonFields;

// Sizes are floating-point numbers in these files; a fraction of a byte takes a whole one.
Bytes whole_bytes(const JsonFields& fields, const char* key) {
  const double size = std::ceil(fields.number(key));
  if (!(size >= 0 && size <= kLargestCost))
    fields.fail(key, fmt::format("a number of bytes between 0 and {:g}", kLargestCost));
  return static_cast<Bytes>(size);
}

std::int64_t integer(const JsonFields& fields, const char* key) {
  const Json* value = fields.find(key);
  const bool fits = value != nullptr && value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<std::uint64_t>() <= INT64_MAX);
  if (!fits) fields.fail(key, "a whole number below 2^63");
  return value->get<std::int64_t>();
}

bool flag(const JsonFields& fields, const char* key) {
  const Json* value = fields.find(key);
  if (value == nullptr || !(value->is_boolean() || *value == 0 || *value == 1)) fields.fail(key, "true, false, 1 or 0");
  return value->is_boolean() ? value->get<bool>() : *value == 1;
}

class DnnReader {
 public:
  explicit DnnReader(const std::string& where) : where_(where), builder_(where) {}

  LoadedGraph read(std::string_view content) {
    const formats::JsonSection sections[] = {
        {"nodes", [this](std::size_t index, const Json& element) { read_node(index, element); }},
        {"edges", [this](std::size_t index, const Json& element) { read_edge(index, element); }}};
    const Json file = formats::parse_json(where_, content, sections);
    const JsonFields head(where_, file);
    for (const char* section : {"nodes", "edges"})
      if (head.find(section) == nullptr || !head.find(section)->is_array()) head.fail(section, "an array");
    for (std::size_t i = 0; i < edges_.size(); ++i) add_edge(i);
    return {std::move(builder_).build(), "dnn-partitioning", {describe_machine(head)}};
  }

 private:
  struct Edge {
    std::int64_t src, dst;
    Seconds cost;
  };

  void read_node(std::size_t index, const Json& element) {
    const JsonFields node(fmt::format("{}: node {}", where_, index), element);
    const std::int64_t id = integer(node, "id");
    if (!op_of_id_.try_emplace(id, builder_.op_count()).second) node.fail("id", "an id that no other node has");
    OpSpec op;
    // Nodes are known by id; names are a courtesy and may repeat.
    op.name = node.string_or("name", fmt::format("node{}", id));
    if (!names_.insert(op.name).second) op.name += fmt::format("#{}", id);
    op.kind = node.find("isBackwardNode") != nullptr && flag(node, "isBackwardNode") ? "backward" : "forward";
    op.parameter_bytes = whole_bytes(node, "size");
    op.explicit_times["cpu"] = milliseconds(node.number("cpuLatency"));
    op.explicit_times["accelerator"] = flag(node, "supportedOnFpga") ? milliseconds(node.number("fpgaLatency"))
                                                                     : std::numeric_limits<Seconds>::infinity();
    if (node.find("colorClass") != nullptr) op.group = std::to_string(integer(node, "colorClass"));
    builder_.add_op(std::move(op));
  }

  void read_edge(std::size_t index, const Json& element) {
    const JsonFields edge(fmt::format("{}: edge {}", where_, index), element);
    edges_.push_back({integer(edge, "sourceId"), integer(edge, "destId"), milliseconds(edge.number("cost"))});
  }

  OpId op_of(std::size_t edge, std::int64_t id) const {
    const auto found = op_of_id_.find(id);
    if (found == op_of_id_.end())
      throw InputError(fmt::format("{}: edge {} has an end at node {}; required the id of a node", where_, edge, id));
    return found->second;
  }

  // The format wants equal costs on all edges of a source: they then are one tensor with many consumers.
  // Edges with other costs are tensors of their own. Bytes stay 0, because a node's size already counts all
  // its memory.
  void add_edge(std::size_t index) {
    const Edge& edge = edges_[index];
    const OpId producer = op_of(index, edge.src), consumer = op_of(index, edge.dst);
    const auto known = tensors_.find({producer, edge.cost});
    const TensorId tensor = known != tensors_.end() ? known->second : builder_.add_tensor(producer, 0, edge.cost);
    tensors_.emplace(std::pair(producer, edge.cost), tensor);
    builder_.add_consumer(tensor, consumer);
  }

  std::string describe_machine(const JsonFields& head) const {
    constexpr Bytes kMebibyte = Bytes{1} << 20;
    const Bytes memory = whole_bytes(head, "maxSizePerFPGA");
    const std::int64_t accelerators = integer(head, "maxFPGAs"), cpus = integer(head, "maxCPUs");
    const std::string exact =
        memory % kMebibyte == 0 ? fmt::format("{}MiB", memory / kMebibyte) : std::to_string(memory);
    return fmt::format("{}: made for {} accelerators of {} and {} cpus: --machine uniform:{}:{}", where_, accelerators,
                       format_bytes(memory), cpus, accelerators, exact);
  }

  const std::string& where_;
  GraphBuilder builder_;
  std::unordered_map<std::int64_t, OpId> op_of_id_;
  std::unordered_set<std::string> names_;
  std::vector<Edge> edges_;
  std::map<std::pair<OpId, Seconds>, TensorId> tensors_;
};

}  // namespace

LoadedGraph parse_dnn_partitioning(const std::string& where, std::string_view content) {
  return DnnReader(where).read(content);
}

}  // namespace doppler
