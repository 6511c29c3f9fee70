#pragma once

// A dataflow graph: what there is to do, and what needs whose result.
//
//   doppler::GraphBuilder builder("two products");
//   doppler::OpId a = builder.add_op({.name = "a", .kind = "matmul", .flops = 2e12});
//   doppler::OpId b = builder.add_op({.name = "b", .kind = "matmul", .flops = 2e12});
//   builder.add_consumer(builder.add_tensor(a, 64 << 20), b);   // b reads 64 MiB that a writes
//   doppler::Graph graph = std::move(builder).build();          // checks everything, throws InputError
//
// Limits. Ids have 32 bits. There are no cycles, so a loop has to be unrolled. What an op costs is either
// given (`explicit_times`, by type of device) or derived from its flops and bytes by the machine (costs.h).

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// Explicit costs above this are refused: sums over any graph we can hold then stay finite and ordered.
inline constexpr double kLargestCost = 1e18;

// What a builder is told about one op.
struct OpSpec {
  std::string name = {};      // Names are unique; an empty one becomes "op<id>".
  std::string kind = "op";    // e.g. "matmul"; machines may have a rate per kind
  std::string dtype = "f32";  // machines may have a rate per dtype
  Flops flops = 0;
  Bytes bytes_read = 0;  // memory traffic, for the roofline model
  Bytes bytes_written = 0;
  Bytes parameter_bytes = 0;  // resident on the op's device for the whole run
  // The measured or published time by device type; "*" is any type. Infinity says that the op cannot run on that type.
  std::map<std::string, Seconds> explicit_times = {};
  // Ops with the same colocation group share a device. An empty name is no group.
  std::string group = {};
};

// An immutable dataflow graph. Ops produce tensors; a tensor is read by zero or more consumers. Tensors of
// one op have consecutive ids, consumers keep the order in which they were added (the published tie rule
// needs it). Everything is stored as flat arrays indexed by id; a Graph that exists has passed verification.
class Graph {
 public:
  OpId op_count() const { return static_cast<OpId>(flops_.size()); }
  TensorId tensor_count() const { return static_cast<TensorId>(tensor_bytes_.size()); }
  std::size_t edge_count() const { return consumers_.size(); }  // (tensor, consumer) pairs

  // Ops.
  const std::string& name(OpId op) const { return names_[op]; }
  const std::string& kind(OpId op) const { return labels_[kind_[op]]; }
  const std::string& dtype(OpId op) const { return labels_[dtype_[op]]; }
  std::uint32_t kind_id(OpId op) const { return kind_[op]; }  // equal ids: equal kinds
  Flops flops(OpId op) const { return flops_[op]; }
  Bytes bytes_read(OpId op) const { return bytes_read_[op]; }
  Bytes bytes_written(OpId op) const { return bytes_written_[op]; }
  Bytes parameter_bytes(OpId op) const { return parameter_bytes_[op]; }
  OpId find_op(std::string_view name) const;     // returns op_count() if there is none
  OpId op_by_name(std::string_view name) const;  // throws InputError

  // The tensors that `op` reads, and the range of tensor ids [first, last) that it writes.
  std::span<const TensorId> inputs(OpId op) const { return slice(inputs_, input_begin_, op); }
  struct TensorRange {
    TensorId first, last;
    struct Iterator {
      TensorId id;
      TensorId operator*() const { return id; }
      Iterator& operator++() { return ++id, *this; }
      bool operator!=(const Iterator& other) const { return id != other.id; }
    };
    Iterator begin() const { return {first}; }
    Iterator end() const { return {last}; }
    std::size_t size() const { return last - first; }
  };
  TensorRange outputs(OpId op) const { return {output_begin_[op], output_begin_[op + 1]}; }

  // Tensors.
  OpId producer(TensorId tensor) const { return producer_[tensor]; }
  Bytes bytes(TensorId tensor) const { return tensor_bytes_[tensor]; }
  std::span<const OpId> consumers(TensorId tensor) const { return slice(consumers_, consumer_begin_, tensor); }
  // The explicit time to move the tensor over one link. Where there is none it is derived from the tensor's bytes.
  std::optional<Seconds> explicit_transfer(TensorId tensor) const {
    const Seconds value = explicit_transfer_[tensor];
    return value >= 0 ? std::optional(value) : std::nullopt;
  }

  // The extents of the tensor, outermost first. Where nobody said them there are none, as for a scalar.
  std::span<const std::uint32_t> shape(TensorId tensor) const {
    return shape_of_tensor_.empty() ? std::span<const std::uint32_t>() : shapes_[shape_of_tensor_[tensor]];
  }

  // Explicit costs have one column per device type that any op names.
  std::span<const std::string> cost_types() const { return cost_types_; }
  // Returns NaN where none is given for this op and type.
  Seconds explicit_time(OpId op, std::size_t column) const { return explicit_times_[op * cost_types_.size() + column]; }

  // The colocation group of an op, or kNoGroup; groups are numbered from 0.
  static constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t group(OpId op) const { return group_.empty() ? kNoGroup : group_[op]; }
  std::uint32_t group_count() const { return static_cast<std::uint32_t>(group_names_.size()); }
  const std::string& group_name(std::uint32_t group) const { return group_names_[group]; }
  // The same graph in which, beside its own groups, ops of equal label share a device; an empty label says nothing.
  // A group that labels join has the name of its first op's label, or else its own.
  Graph grouped_by(std::span<const std::string> label_of_op) const;
  // The same graph with these explicit times on devices of a type, one per op, instead of what it had for that type;
  // NaN leaves an op as it is. Throws InputError if one is negative, infinite or above kLargestCost.
  Graph with_times(const std::string& type, std::span<const Seconds> time_of_op) const;

  // A number that differs between graphs of other ops (names and kinds) or other edges, and does not depend on costs.
  std::uint64_t fingerprint() const;

  // Has every op after the producers of its inputs; among the possible orders it is the one that follows ids most
  // closely.
  std::span<const OpId> topological_order() const { return topological_order_; }

  const std::string& title() const { return title_; }
  // Says whether costs are in the file's own unit instead of seconds.
  bool unitless() const { return unitless_; }

 private:
  friend class GraphBuilder;

  template <typename T, typename Offset>
  static std::span<const T> slice(const std::vector<T>& values, const std::vector<Offset>& begin, std::size_t i) {
    return {values.data() + begin[i], values.data() + begin[i + 1]};
  }

  std::string title_;
  bool unitless_ = false;
  std::vector<std::string> names_;
  std::vector<std::string> labels_;  // interned kinds and dtypes
  std::vector<std::uint32_t> kind_, dtype_;
  std::vector<Flops> flops_;
  std::vector<Bytes> bytes_read_, bytes_written_, parameter_bytes_;
  std::vector<std::string> cost_types_;
  std::vector<Seconds> explicit_times_;  // op_count × cost_types
  std::vector<std::uint32_t> group_;     // empty if there are no groups
  std::vector<std::string> group_names_;

  std::vector<std::uint32_t> input_begin_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> output_begin_;
  std::vector<OpId> producer_;
  std::vector<Bytes> tensor_bytes_;
  std::vector<Seconds> explicit_transfer_;          // negative: none
  std::vector<std::uint32_t> shape_of_tensor_;      // empty if no tensor has one
  std::vector<std::vector<std::uint32_t>> shapes_;  // each once; the first is the one of tensors without
  std::vector<std::uint32_t> consumer_begin_;
  std::vector<OpId> consumers_;

  std::vector<OpId> topological_order_;
  // Open addressing, a power of two of slots; op_count() marks a free one. Sorting ten million names took
  // longer than everything else together.
  std::vector<OpId> name_slots_;
};

// Collects ops and tensors in any order; build() checks everything and lays out the arrays.
class GraphBuilder {
 public:
  // `where` starts every error text: usually the path of the file being read.
  explicit GraphBuilder(std::string where) : where_(std::move(where)) {}

  void set_title(std::string title) { graph_.title_ = std::move(title); }
  void set_unitless(bool unitless) { graph_.unitless_ = unitless; }
  OpId add_op(OpSpec spec);
  // `explicit_transfer` as in Graph::explicit_transfer.
  TensorId add_tensor(OpId producer, Bytes bytes, std::optional<Seconds> explicit_transfer = std::nullopt);
  void add_consumer(TensorId tensor, OpId consumer);
  // Says the extents of a tensor, outermost first. Costs do not depend on them; policies may look at them.
  void set_shape(TensorId tensor, std::vector<std::uint32_t> shape);
  // Says the order of an op's inputs, where it is not that of the add_consumer calls. It must name exactly its inputs.
  void set_input_order(OpId op, std::vector<TensorId> inputs);
  OpId op_count() const { return graph_.op_count(); }

  // Throws InputError on: no ops, duplicate names, dangling ids, a consumer twice on one tensor, a cycle
  // (which is printed), costs that are negative, NaN or above kLargestCost.
  Graph build() &&;

 private:
  struct Tensor {
    OpId producer;
    Bytes bytes;
    Seconds explicit_transfer;
  };
  struct Edge {
    TensorId tensor;
    OpId consumer;
  };
  struct Interned {
    std::unordered_map<std::string, std::uint32_t> ids;
    std::uint32_t id_of(const std::string& text, std::vector<std::string>& texts);
  };
  void check_op(const OpSpec& op) const;
  void lay_out_times();
  void lay_out_tensors();
  void lay_out_edges(const std::vector<TensorId>& new_id);
  void order_inputs(const std::vector<TensorId>& new_id);
  void refuse_duplicate_edges() const;
  void index_names();
  void order_topologically();

  std::string where_;
  Graph graph_;  // op columns grow here directly, so that a large graph never exists twice
  Interned labels_, groups_;
  std::map<std::string, std::vector<Seconds>> time_columns_;  // by device type; short columns end in "not given"
  std::vector<Tensor> tensors_;
  std::vector<std::uint32_t> shape_of_tensor_;  // as in the graph, by number of the call; short if the last have none
  std::map<std::vector<std::uint32_t>, std::uint32_t> shape_ids_;
  std::vector<Edge> edges_;
  std::vector<std::pair<OpId, std::vector<TensorId>>> input_orders_;
};

}  // namespace doppler
