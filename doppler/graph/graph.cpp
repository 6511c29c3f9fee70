#include "doppler/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

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
    throw InputError(
        fmt::format("{}: op '{}' has {} {}; required between 0 and {:g}", where, op, what, value, kLargestCost));
}

// "-0" passes for a cost; as 0 it survives being written and read.
double unsigned_zero(double value) { return value + 0.0; }

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
  const std::size_t mask = name_slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>()(name) & mask;
  while (name_slots_[slot] != op_count() && names_[name_slots_[slot]] != name) slot = (slot + 1) & mask;
  return name_slots_[slot];
}

OpId Graph::op_by_name(std::string_view name) const {
  const OpId op = find_op(name);
  if (op == op_count())
    throw InputError(fmt::format("{}: no op named '{}'; required one of its {} ops", title_, name, op_count()));
  return op;
}

Graph Graph::grouped_by(std::span<const std::string> label_of_op) const {
  DOPPLER_CHECK(label_of_op.size() == op_count(), "{} labels for {} ops", label_of_op.size(), op_count());
  // Ops are joined by union and find, the smallest op standing for its group.
  std::vector<OpId> leader(op_count());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](OpId op) {
    while (leader[op] != op) op = leader[op] = leader[leader[op]];
    return op;
  };
  std::unordered_map<std::string, OpId> first_of_label;
  std::vector<OpId> first_of_group(group_count(), op_count());
  const auto join = [&](OpId op, OpId& first) {
    if (first == op_count()) first = op;
    const auto [low, high] = std::minmax({find(op), find(first)});
    leader[high] = low;
  };
  for (OpId op = 0; op < op_count(); ++op) {
    if (group(op) != kNoGroup) join(op, first_of_group[group(op)]);
    if (!label_of_op[op].empty()) join(op, first_of_label.try_emplace(label_of_op[op], op_count()).first->second);
  }
  Graph result = *this;
  result.group_.assign(op_count(), kNoGroup);
  result.group_names_.clear();
  for (OpId op = 0; op < op_count(); ++op) {
    if (group(op) == kNoGroup && label_of_op[op].empty()) continue;
    const OpId first = find(op);
    if (first == op) {
      result.group_[op] = static_cast<std::uint32_t>(result.group_names_.size());
      result.group_names_.push_back(label_of_op[op].empty() ? group_name(group(op)) : label_of_op[op]);
    } else {
      result.group_[op] = result.group_[first];
    }
  }
  if (result.group_names_.empty()) result.group_.clear();
  return result;
}

Graph Graph::with_times(const std::string& type, std::span<const Seconds> time_of_op) const {
  DOPPLER_CHECK(time_of_op.size() == op_count(), "{} times for {} ops", time_of_op.size(), op_count());
  Graph result = *this;
  std::size_t column = std::find(cost_types_.begin(), cost_types_.end(), type) - cost_types_.begin();
  if (column == cost_types_.size()) {
    const std::size_t columns = column + 1;
    result.cost_types_.push_back(type);
    result.explicit_times_.assign(op_count() * columns, std::numeric_limits<Seconds>::quiet_NaN());
    for (std::size_t op = 0; op < op_count(); ++op)
      std::copy_n(explicit_times_.begin() + static_cast<std::ptrdiff_t>(op * column), column,
                  result.explicit_times_.begin() + static_cast<std::ptrdiff_t>(op * columns));
  }
  for (OpId op = 0; op < op_count(); ++op) {
    if (std::isnan(time_of_op[op])) continue;
    check_cost(title_, name(op), fmt::format("time on '{}'", type), time_of_op[op]);
    result.explicit_times_[op * result.cost_types_.size() + column] = unsigned_zero(time_of_op[op]);
  }
  return result;
}

std::uint64_t Graph::fingerprint() const {
  // FNV-1a, which is the same on every box.
  constexpr std::uint64_t kPrime = 1099511628211u;
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    hash = (hash ^ 0xff) * kPrime;  // No text has this byte in valid UTF-8, so that neighbours stay apart.
  };
  const auto add_number = [&](std::uint32_t number) { hash = (hash ^ number) * kPrime; };
  for (OpId op = 0; op < op_count(); ++op) {
    add(name(op));
    add(kind(op));
    add_number(static_cast<std::uint32_t>(inputs(op).size()));
    for (const TensorId tensor : inputs(op)) add_number(tensor);
    add_number(output_begin_[op]);
  }
  return hash;
}

std::uint32_t GraphBuilder::Interned::id_of(const std::string& text, std::vector<std::string>& texts) {
  const auto [entry, added] = ids.try_emplace(text, static_cast<std::uint32_t>(texts.size()));
  if (added) texts.push_back(text);
  return entry->second;
}

OpId GraphBuilder::add_op(OpSpec spec) {
  const OpId id = op_count();
  if (id == std::numeric_limits<OpId>::max() - 1)
    throw InputError(fmt::format("{}: too many ops; required fewer than 2^32", where_));
  if (spec.name.empty()) spec.name = fmt::format("op{}", id);
  check_op(spec);
  graph_.kind_.push_back(labels_.id_of(spec.kind, graph_.labels_));
  graph_.dtype_.push_back(labels_.id_of(spec.dtype, graph_.labels_));
  graph_.flops_.push_back(unsigned_zero(spec.flops));
  graph_.bytes_read_.push_back(spec.bytes_read);
  graph_.bytes_written_.push_back(spec.bytes_written);
  graph_.parameter_bytes_.push_back(spec.parameter_bytes);
  for (const auto& [type, time] : spec.explicit_times) {
    std::vector<Seconds>& column = time_columns_[type];
    column.resize(id, std::numeric_limits<Seconds>::quiet_NaN());
    column.push_back(unsigned_zero(time));
  }
  if (!spec.group.empty()) {
    graph_.group_.resize(id, Graph::kNoGroup);
    graph_.group_.push_back(groups_.id_of(spec.group, graph_.group_names_));
  }
  graph_.names_.push_back(std::move(spec.name));
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
    throw InputError(fmt::format("{}: op '{}' can run on no device type; required at least one", where_, op.name));
}

TensorId GraphBuilder::add_tensor(OpId producer, Bytes bytes, std::optional<Seconds> explicit_transfer) {
  if (producer >= op_count())
    throw InputError(fmt::format("{}: a tensor is produced by op {}; required below {}", where_, producer, op_count()));
  const std::string& name = graph_.name(producer);
  check_cost(where_, name, "a tensor with bytes", static_cast<double>(bytes));
  if (explicit_transfer) check_cost(where_, name, "a tensor with transfer time", *explicit_transfer);
  tensors_.push_back({producer, bytes, explicit_transfer ? unsigned_zero(*explicit_transfer) : -1.0});
  return static_cast<TensorId>(tensors_.size() - 1);
}

void GraphBuilder::set_shape(TensorId tensor, std::vector<std::uint32_t> shape) {
  DOPPLER_CHECK(tensor < tensors_.size(), "shape of tensor {} of {}", tensor, tensors_.size());
  if (shape.empty()) return;
  if (graph_.shapes_.empty()) graph_.shapes_.emplace_back();
  const auto [known, is_new] = shape_ids_.emplace(shape, static_cast<std::uint32_t>(graph_.shapes_.size()));
  if (is_new) graph_.shapes_.push_back(std::move(shape));
  if (shape_of_tensor_.size() <= tensor) shape_of_tensor_.resize(tensor + std::size_t{1}, 0);
  shape_of_tensor_[tensor] = known->second;
}

void GraphBuilder::add_consumer(TensorId tensor, OpId consumer) {
  if (tensor >= tensors_.size() || consumer >= op_count())
    throw InputError(fmt::format("{}: op {} reads tensor {}; required below {} and {}", where_, consumer, tensor,
                                 op_count(), tensors_.size()));
  if (tensors_[tensor].producer == consumer)
    throw InputError(
        fmt::format("{}: op '{}' reads its own output; required an acyclic graph", where_, graph_.name(consumer)));
  edges_.push_back({tensor, consumer});
}

void GraphBuilder::set_input_order(OpId op, std::vector<TensorId> inputs) {
  if (op >= op_count())
    throw InputError(fmt::format("{}: the inputs of op {} are ordered; required below {}", where_, op, op_count()));
  input_orders_.emplace_back(op, std::move(inputs));
}

void GraphBuilder::lay_out_times() {
  const std::size_t columns = time_columns_.size();
  graph_.explicit_times_.assign(op_count() * columns, std::numeric_limits<Seconds>::quiet_NaN());
  for (auto& [type, times] : time_columns_) {
    const std::size_t column = graph_.cost_types_.size();
    for (std::size_t op = 0; op < times.size(); ++op) graph_.explicit_times_[op * columns + column] = times[op];
    graph_.cost_types_.push_back(type);
    times = {};
  }
}

void GraphBuilder::lay_out_tensors() {
  // Stably sorted by producer (a counting sort).
  graph_.output_begin_.assign(op_count() + std::size_t{1}, 0);
  for (const Tensor& tensor : tensors_) ++graph_.output_begin_[tensor.producer + 1];
  accumulate_offsets(graph_.output_begin_);
  std::vector<TensorId> next(graph_.output_begin_.begin(), graph_.output_begin_.end() - 1);
  std::vector<TensorId> new_id(tensors_.size());
  graph_.producer_.resize(tensors_.size());
  graph_.tensor_bytes_.resize(tensors_.size());
  graph_.explicit_transfer_.resize(tensors_.size());
  if (!shape_of_tensor_.empty()) graph_.shape_of_tensor_.resize(tensors_.size());
  shape_of_tensor_.resize(graph_.shape_of_tensor_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorId id = next[tensors_[i].producer]++;
    new_id[i] = id;
    graph_.producer_[id] = tensors_[i].producer;
    graph_.tensor_bytes_[id] = tensors_[i].bytes;
    graph_.explicit_transfer_[id] = tensors_[i].explicit_transfer;
    if (!shape_of_tensor_.empty()) graph_.shape_of_tensor_[id] = shape_of_tensor_[i];
  }
  tensors_ = {};
  lay_out_edges(new_id);
  order_inputs(new_id);
}

void GraphBuilder::lay_out_edges(const std::vector<TensorId>& new_id) {
  // By tensor and by consumer; both keep the order in which the edges were added.
  graph_.consumer_begin_.assign(new_id.size() + 1, 0);
  graph_.input_begin_.assign(op_count() + std::size_t{1}, 0);
  for (Edge& edge : edges_) {
    edge.tensor = new_id[edge.tensor];
    ++graph_.consumer_begin_[edge.tensor + 1];
    ++graph_.input_begin_[edge.consumer + 1];
  }
  accumulate_offsets(graph_.consumer_begin_);
  accumulate_offsets(graph_.input_begin_);
  graph_.consumers_.resize(edges_.size());
  graph_.inputs_.resize(edges_.size());
  std::vector<std::uint32_t> next_consumer(graph_.consumer_begin_.begin(), graph_.consumer_begin_.end() - 1);
  std::vector<std::uint32_t> next_input(graph_.input_begin_.begin(), graph_.input_begin_.end() - 1);
  for (const Edge& edge : edges_) {
    graph_.consumers_[next_consumer[edge.tensor]++] = edge.consumer;
    graph_.inputs_[next_input[edge.consumer]++] = edge.tensor;
  }
  edges_ = {};
}

void GraphBuilder::order_inputs(const std::vector<TensorId>& new_id) {
  for (auto& [op, order] : input_orders_) {
    bool known = true;
    for (TensorId& tensor : order) {
      known = known && tensor < new_id.size();
      if (known) tensor = new_id[tensor];
    }
    const auto inputs = graph_.inputs(op);
    std::vector<TensorId> have(inputs.begin(), inputs.end()), want(order);
    std::sort(have.begin(), have.end());
    std::sort(want.begin(), want.end());
    if (!known || have != want)
      throw InputError(
          fmt::format("{}: the input order of op '{}' is not a permutation of the {} tensors it reads; "
                      "required each exactly once",
                      where_, graph_.name(op), have.size()));
    std::copy(order.begin(), order.end(), graph_.inputs_.begin() + graph_.input_begin_[op]);
  }
  input_orders_ = {};
}

void GraphBuilder::refuse_duplicate_edges() const {
  // A tensor listed twice among the inputs of one op is a duplicate edge.
  std::vector<OpId> last_reader(graph_.tensor_count(), op_count());
  for (OpId op = 0; op < op_count(); ++op) {
    for (const TensorId tensor : graph_.inputs(op)) {
      if (last_reader[tensor] == op)
        throw InputError(fmt::format("{}: op '{}' reads an output of op '{}' twice; required each edge once", where_,
                                     graph_.name(op), graph_.name(graph_.producer(tensor))));
      last_reader[tensor] = op;
    }
  }
}

void GraphBuilder::index_names() {
  const std::size_t slots = std::bit_ceil(2 * std::size_t{op_count()});  // at most half full
  graph_.name_slots_.assign(slots, op_count());
  for (OpId op = 0; op < op_count(); ++op) {
    const std::string& name = graph_.name(op);
    std::size_t slot = std::hash<std::string_view>()(name) & (slots - 1);
    for (; graph_.name_slots_[slot] != op_count(); slot = (slot + 1) & (slots - 1))
      if (graph_.name(graph_.name_slots_[slot]) == name)
        throw InputError(fmt::format("{}: two ops are named '{}'; required unique names", where_, name));
    graph_.name_slots_[slot] = op;
  }
}

void GraphBuilder::order_topologically() {
  // Kahn's algorithm with the smallest ready id first: a file whose ids are topological keeps its order.
  std::vector<std::uint32_t> pending(op_count());
  std::priority_queue<OpId, std::vector<OpId>, std::greater<>> ready;
  for (OpId op = 0; op < op_count(); ++op) {
    pending[op] = static_cast<std::uint32_t>(graph_.inputs(op).size());
    if (pending[op] == 0) ready.push(op);
  }
  graph_.topological_order_.reserve(op_count());
  while (!ready.empty()) {
    const OpId op = ready.top();
    ready.pop();
    graph_.topological_order_.push_back(op);
    for (const TensorId tensor : graph_.outputs(op))
      for (const OpId consumer : graph_.consumers(tensor))
        if (--pending[consumer] == 0) ready.push(consumer);
  }
  if (graph_.topological_order_.size() < op_count())
    throw InputError(fmt::format("{}: cycle {}; required an acyclic graph", where_,
                                 describe_cycle(graph_, find_cycle(graph_, pending))));
}

Graph GraphBuilder::build() && {
  if (op_count() == 0) throw InputError(fmt::format("{}: the graph has no ops; required at least one", where_));
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  if (std::max(tensors_.size(), edges_.size()) > kMost)
    throw InputError(fmt::format("{}: too large; required fewer than 2^32 tensors and edges", where_));
  // So that sums of bytes never overflow.
  double bytes = 0;
  for (const Bytes parameters : graph_.parameter_bytes_) bytes += static_cast<double>(parameters);
  for (const auto& tensor : tensors_) bytes += static_cast<double>(tensor.bytes);
  if (bytes > kLargestCost)
    throw InputError(fmt::format("{}: parameters and tensors have {:g} bytes together; required at most {:g}", where_,
                                 bytes, kLargestCost));
  if (graph_.title_.empty()) graph_.title_ = where_;
  if (!graph_.group_.empty()) graph_.group_.resize(op_count(), Graph::kNoGroup);
  lay_out_times();
  lay_out_tensors();
  refuse_duplicate_edges();
  index_names();
  order_topologically();
  return std::move(graph_);
}

}  // namespace doppler
