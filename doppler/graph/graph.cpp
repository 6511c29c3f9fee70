#include "doppler/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// Turns counts (in begin[i + 1]) into offsets.
template <typename T>
void accumulate_offsets(std::vector<T>& begin) {
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
}

void check_cost(const std::string& where, const std::string& op, std::string_view what, double value) {
  // Written so that NaN fails too.
  if (!(value >= 0 && value <= kLargestCost))
    throw InputError(fmt::format("{}: op '{}' has {} {}; required between 0 and {:g}", where, op, what, value,
                                 kLargestCost));
}

// One cycle among the ops that a topological sort could not remove.
std::vector<OpId> find_cycle(const Graph& graph, const std::vector<std::uint32_t>& pending) {
  OpId op = 0;
  while (pending[op] == 0) ++op;
  // Every remaining op has a remaining predecessor: walk backwards until one repeats.
  std::vector<bool> seen(graph.op_count(), false);
  std::vector<OpId> walk;
  while (!seen[op]) {
    seen[op] = true;
    walk.push_back(op);
    for (const TensorId tensor : graph.inputs(op)) {
      if (pending[graph.producer(tensor)] > 0) {
        op = graph.producer(tensor);
        break;
      }
    }
  }
  std::vector<OpId> cycle(std::find(walk.begin(), walk.end(), op), walk.end());
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

std::string describe_cycle(const Graph& graph, const std::vector<OpId>& cycle) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i)
    text += fmt::format("'{}' -> ", graph.name(cycle[i]));
  if (cycle.size() > kShown) text += fmt::format("… ({} more) -> ", cycle.size() - kShown);
  return text + fmt::format("'{}'", graph.name(cycle.front()));
}

}  // namespace

OpId Graph::find_op(std::string_view name) const {
  const auto found = std::lower_bound(ops_by_name_.begin(), ops_by_name_.end(), name,
                                      [&](OpId op, std::string_view wanted) { return names_[op] < wanted; });
  return found != ops_by_name_.end() && names_[*found] == name ? *found : op_count();
}

OpId Graph::op_by_name(std::string_view name) const {
  const OpId op = find_op(name);
  if (op == op_count())
    throw InputError(
        fmt::format("{}: no op named '{}'; required one of its {} ops", title_, name, op_count()));
  return op;
}

OpId GraphBuilder::add_op(OpSpec spec) {
  const OpId id = op_count();
  if (spec.name.empty()) spec.name = fmt::format("op{}", id);
  check_op(spec);
  ops_.push_back(std::move(spec));
  return id;
}

void GraphBuilder::check_op(const OpSpec& op) const {
  check_cost(where_, op.name, "flops", op.flops);
  for (const auto& [what, bytes] : {std::pair("bytes_read", op.bytes_read),
                                    {"bytes_written", op.bytes_written},
                                    {"parameter_bytes", op.parameter_bytes}})
    check_cost(where_, op.name, what, static_cast<double>(bytes));
  bool runs_somewhere = op.explicit_times.empty();
  for (const auto& [type, time] : op.explicit_times) {
    if (time == std::numeric_limits<Seconds>::infinity()) continue;
    check_cost(where_, op.name, fmt::format("time on '{}'", type), time);
    runs_somewhere = true;
  }
  if (!runs_somewhere)
    throw InputError(
        fmt::format("{}: op '{}' can run on no device type; required at least one", where_, op.name));
}

TensorId GraphBuilder::add_tensor(OpId producer, Bytes bytes, std::optional<Seconds> explicit_transfer) {
  if (producer >= op_count())
    throw InputError(
        fmt::format("{}: a tensor is produced by op {}; required below {}", where_, producer, op_count()));
  const std::string& name = ops_[producer].name;
  check_cost(where_, name, "a tensor with bytes", static_cast<double>(bytes));
  if (explicit_transfer) check_cost(where_, name, "a tensor with transfer time", *explicit_transfer);
  tensors_.push_back({producer, bytes, explicit_transfer.value_or(-1.0)});
  return static_cast<TensorId>(tensors_.size() - 1);
}

void GraphBuilder::add_consumer(TensorId tensor, OpId consumer) {
  if (tensor >= tensors_.size() || consumer >= op_count())
    throw InputError(fmt::format("{}: op {} reads tensor {}; required below {} and {}", where_, consumer,
                                 tensor, op_count(), tensors_.size()));
  if (tensors_[tensor].producer == consumer)
    throw InputError(fmt::format("{}: op '{}' reads its own output; required an acyclic graph", where_,
                                 ops_[consumer].name));
  edges_.push_back({tensor, consumer});
}

void GraphBuilder::lay_out_ops(Graph& graph) {
  const std::size_t n = ops_.size();
  std::unordered_map<std::string, std::uint32_t> label_ids;
  const auto intern = [&](const std::string& label) {
    const auto [entry, added] =
        label_ids.try_emplace(label, static_cast<std::uint32_t>(graph.labels_.size()));
    if (added) graph.labels_.push_back(label);
    return entry->second;
  };
  std::map<std::string, std::size_t> columns;
  for (const OpSpec& op : ops_)
    for (const auto& [type, time] : op.explicit_times) columns.try_emplace(type, 0);
  for (auto& [type, column] : columns) {
    column = graph.cost_types_.size();
    graph.cost_types_.push_back(type);
  }
  graph.explicit_times_.assign(n * columns.size(), std::numeric_limits<double>::quiet_NaN());
  graph.names_.reserve(n);
  std::unordered_map<std::string, std::uint32_t> group_ids;
  for (std::size_t i = 0; i < n; ++i) {
    OpSpec& op = ops_[i];
    graph.kind_.push_back(intern(op.kind));
    graph.dtype_.push_back(intern(op.dtype));
    graph.flops_.push_back(op.flops);
    graph.bytes_read_.push_back(op.bytes_read);
    graph.bytes_written_.push_back(op.bytes_written);
    graph.parameter_bytes_.push_back(op.parameter_bytes);
    for (const auto& [type, time] : op.explicit_times)
      graph.explicit_times_[i * columns.size() + columns.at(type)] = time;
    if (!op.group.empty()) {
      graph.group_.resize(n, Graph::kNoGroup);
      graph.group_[i] =
          group_ids.try_emplace(op.group, static_cast<std::uint32_t>(group_ids.size())).first->second;
    }
    graph.names_.push_back(std::move(op.name));
    op = OpSpec();  // frees as it goes: a million-op graph never exists twice
  }
  graph.group_count_ = static_cast<std::uint32_t>(group_ids.size());
}

void GraphBuilder::lay_out_tensors(Graph& graph) {
  const std::size_t n = graph.op_count();
  const std::size_t tensor_count = tensors_.size();
  // Tensors, stably sorted by producer (a counting sort).
  graph.output_begin_.assign(n + 1, 0);
  for (const Tensor& tensor : tensors_) ++graph.output_begin_[tensor.producer + 1];
  accumulate_offsets(graph.output_begin_);
  std::vector<TensorId> next(graph.output_begin_.begin(), graph.output_begin_.end() - 1);
  std::vector<TensorId> new_id(tensor_count);
  graph.producer_.resize(tensor_count);
  graph.tensor_bytes_.resize(tensor_count);
  graph.explicit_transfer_.resize(tensor_count);
  for (std::size_t i = 0; i < tensor_count; ++i) {
    const TensorId id = next[tensors_[i].producer]++;
    new_id[i] = id;
    graph.producer_[id] = tensors_[i].producer;
    graph.tensor_bytes_[id] = tensors_[i].bytes;
    graph.explicit_transfer_[id] = tensors_[i].explicit_transfer;
  }
  tensors_ = {};
  // Edges, by tensor and by consumer; both keep the order in which they were added.
  graph.consumer_begin_.assign(tensor_count + 1, 0);
  graph.input_begin_.assign(n + 1, 0);
  for (Edge& edge : edges_) {
    edge.tensor = new_id[edge.tensor];
    ++graph.consumer_begin_[edge.tensor + 1];
    ++graph.input_begin_[edge.consumer + 1];
  }
  accumulate_offsets(graph.consumer_begin_);
  accumulate_offsets(graph.input_begin_);
  graph.consumers_.resize(edges_.size());
  graph.inputs_.resize(edges_.size());
  std::vector<std::uint32_t> next_consumer(graph.consumer_begin_.begin(), graph.consumer_begin_.end() - 1);
  std::vector<std::uint32_t> next_input(graph.input_begin_.begin(), graph.input_begin_.end() - 1);
  for (const Edge& edge : edges_) {
    graph.consumers_[next_consumer[edge.tensor]++] = edge.consumer;
    graph.inputs_[next_input[edge.consumer]++] = edge.tensor;
  }
  edges_ = {};
  // A tensor listed twice among the inputs of one op is a duplicate edge.
  std::vector<OpId> last_reader(tensor_count, graph.op_count());
  for (OpId op = 0; op < n; ++op) {
    for (const TensorId tensor : graph.inputs(op)) {
      if (last_reader[tensor] == op)
        throw InputError(fmt::format("{}: op '{}' reads an output of op '{}' twice; required each edge once",
                                     where_, graph.name(op), graph.name(graph.producer(tensor))));
      last_reader[tensor] = op;
    }
  }
}

void GraphBuilder::index_names(Graph& graph) const {
  auto& index = graph.ops_by_name_;
  index.resize(graph.op_count());
  std::iota(index.begin(), index.end(), 0);
  std::sort(index.begin(), index.end(), [&](OpId a, OpId b) { return graph.names_[a] < graph.names_[b]; });
  for (std::size_t i = 1; i < index.size(); ++i)
    if (graph.names_[index[i - 1]] == graph.names_[index[i]])
      throw InputError(
          fmt::format("{}: two ops are named '{}'; required unique names", where_, graph.names_[index[i]]));
}

void GraphBuilder::order_topologically(Graph& graph) const {
  // Kahn's algorithm with the smallest ready id first: a file whose ids are topological keeps its order.
  std::vector<std::uint32_t> pending(graph.op_count());
  std::priority_queue<OpId, std::vector<OpId>, std::greater<>> ready;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    pending[op] = static_cast<std::uint32_t>(graph.inputs(op).size());
    if (pending[op] == 0) ready.push(op);
  }
  graph.topological_order_.reserve(graph.op_count());
  while (!ready.empty()) {
    const OpId op = ready.top();
    ready.pop();
    graph.topological_order_.push_back(op);
    for (const TensorId tensor : graph.outputs(op))
      for (const OpId consumer : graph.consumers(tensor))
        if (--pending[consumer] == 0) ready.push(consumer);
  }
  if (graph.topological_order_.size() < graph.op_count())
    throw InputError(fmt::format("{}: cycle {}; required an acyclic graph", where_,
                                 describe_cycle(graph, find_cycle(graph, pending))));
}

Graph GraphBuilder::build() && {
  if (ops_.empty()) throw InputError(fmt::format("{}: the graph has no ops; required at least one", where_));
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  if (std::max({ops_.size(), tensors_.size(), edges_.size()}) > kMost)
    throw InputError(fmt::format("{}: too large; required fewer than 2^32 ops, tensors and edges", where_));
  Graph graph;
  graph.title_ = title_.empty() ? where_ : std::move(title_);
  graph.unitless_ = unitless_;
  lay_out_ops(graph);
  lay_out_tensors(graph);
  index_names(graph);
  order_topologically(graph);
  return graph;
}

}  // namespace doppler
