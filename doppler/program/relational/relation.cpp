#include "doppler/program/relational/relation.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using Kind = LogicalOp::Kind;

std::vector<std::string> names_of(const std::vector<Column>& columns) {
  std::vector<std::string> result;
  for (const Column& column : columns) result.push_back(column.name);
  return result;
}

std::size_t position(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Extends every partial match by the tuples of one more relation that agree on shared columns.
Relation join(const LogicalOp& op, std::span<const Relation> inputs) {
  const std::vector<std::string> columns = names_of(op.columns);
  struct Match {
    Key key;
    std::vector<const Dense*> arrays;
  };
  constexpr Index kUnset = -1;
  std::vector<Match> matches = {{Key(columns.size(), kUnset), {}}};
  for (const Relation& relation : inputs) {
    std::vector<std::size_t> to;
    for (const std::string& name : relation.columns) to.push_back(position(columns, name));
    std::vector<Match> longer;
    for (const Match& match : matches)
      for (const auto& [key, array] : relation.tuples) {
        Match next = match;
        bool agrees = true;
        for (std::size_t i = 0; i < key.size() && agrees; ++i) {
          agrees = next.key[to[i]] == kUnset || next.key[to[i]] == key[i];
          next.key[to[i]] = key[i];
        }
        if (!agrees) continue;
        next.arrays.push_back(&array);
        longer.push_back(std::move(next));
      }
    matches = std::move(longer);
  }
  Relation result{columns, {}};
  Node node{.name = "join", .dtype = DType::f64, .shape = Shape(op.rank, 1), .inputs = {}, .computation = op.kernel};
  for (const Match& match : matches) {
    Shape sizes = op.kernel.sizes;  // right for labels that no operand has
    std::vector<Dense> operands;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      operands.push_back(*match.arrays[k]);
      for (std::size_t i = 0; i < op.kernel.operands[k].size(); ++i)
        sizes[op.kernel.operands[k][i]] = match.arrays[k]->shape[i];
    }
    result.tuples.emplace(match.key, evaluate_block(node, Rect::whole(sizes), operands));
  }
  return result;
}

Relation aggregate(const LogicalOp& op, const Relation& input) {
  Relation result{names_of(op.columns), {}};
  std::vector<std::size_t> from;
  for (const std::string& name : result.columns) from.push_back(position(input.columns, name));
  for (const auto& [key, array] : input.tuples) {
    Key group;
    for (const std::size_t i : from) group.push_back(key[i]);
    const auto [found, fresh] = result.tuples.try_emplace(std::move(group), array);
    if (fresh) continue;
    for (std::size_t i = 0; i < array.values.size(); ++i)
      found->second.values[i] = fold(op.aggregate, found->second.values[i], array.values[i]);
  }
  return result;
}

Relation tile(const LogicalOp& op, const Relation& input) {
  Relation result{names_of(op.columns), {}};
  for (const auto& [key, array] : input.tuples)
    for (Index piece = 0; piece < op.pieces; ++piece) {
      Rect region = Rect::whole(array.shape);
      region.begin[op.dimension] = block_begin(piece, array.shape[op.dimension], op.pieces);
      region.end[op.dimension] = block_begin(piece + 1, array.shape[op.dimension], op.pieces);
      Key longer = key;
      longer.push_back(piece);
      result.tuples.emplace(std::move(longer), cut(array, Rect::whole(array.shape), region));
    }
  return result;
}

Relation concat(const LogicalOp& op, const Relation& input) {
  Relation result{names_of(op.columns), {}};
  std::map<Key, std::map<Index, const Dense*>> rows;
  for (const auto& [key, array] : input.tuples) {
    Key rest = key;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(op.column));
    rows[std::move(rest)][key[op.column]] = &array;
  }
  for (const auto& [key, pieces] : rows) {
    Shape shape = pieces.begin()->second->shape;
    shape[op.dimension] = 0;
    for (const auto& [index, piece] : pieces) shape[op.dimension] += piece->shape[op.dimension];
    Dense whole(shape);
    Rect region = Rect::whole(shape);
    region.end[op.dimension] = 0;
    for (const auto& [index, piece] : pieces) {
      region.begin[op.dimension] = region.end[op.dimension];
      region.end[op.dimension] += piece->shape[op.dimension];
      paste(*piece, region, whole, Rect::whole(shape));
    }
    result.tuples.emplace(key, std::move(whole));
  }
  return result;
}

Relation rekey(const LogicalOp& op, const Relation& input) {
  Relation result{names_of(op.columns), {}};
  for (const auto& [key, array] : input.tuples) {
    Key next;
    for (std::size_t i = 0; i < op.from.size(); ++i) next.push_back(key[op.from[i]] + op.offset[i]);
    result.tuples.emplace(std::move(next), array);
  }
  return result;
}

Flops kernel_flops(const Einsum& kernel, std::size_t rank) {
  const auto points = static_cast<Flops>(product(kernel.sizes));
  Flops results = 1;
  for (std::size_t i = 0; i < rank && i < kernel.sizes.size(); ++i) results *= static_cast<Flops>(kernel.sizes[i]);
  return kernel.join.flops() * points + (kernel.aggregate ? points - results : 0);
}

}  // namespace

std::vector<std::size_t> by_rank(const std::vector<Column>& columns) {
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return columns[a].rank < columns[b].rank; });
  return order;
}

double LogicalOp::tuples() const {
  double count = 1;
  for (const Column& c : columns) count *= static_cast<double>(c.end - c.begin);
  return count;
}

TraId LogicalPlan::add(LogicalOp op) {
  ops_.push_back(std::move(op));
  return size() - 1;
}

TraId LogicalPlan::source(std::string name, std::vector<Column> columns, double tuple_bytes) {
  LogicalOp op;
  op.columns = std::move(columns);
  for (std::size_t i = 0; i < op.columns.size(); ++i) op.columns[i].rank = static_cast<std::uint32_t>(i);
  op.tuple_bytes = tuple_bytes;
  op.name = std::move(name);
  return add(std::move(op));
}

TraId LogicalPlan::join(std::vector<TraId> inputs, Einsum kernel, std::size_t rank, double tuple_bytes) {
  LogicalOp op;
  op.kind = Kind::join;
  op.kernel = std::move(kernel);
  op.rank = rank;
  op.tuple_bytes = tuple_bytes;
  return copy(op, std::move(inputs));
}

TraId LogicalPlan::aggregate(TraId input, const std::vector<std::string>& group, Aggregate aggregate) {
  LogicalOp op;
  op.kind = Kind::aggregate;
  op.aggregate = aggregate;
  for (const std::string& name : group) op.columns.push_back({name, 0, 1});
  return copy(op, {input});
}

TraId LogicalPlan::rekey(TraId input, std::vector<std::string> names, std::vector<std::size_t> from,
                         std::vector<Index> offset) {
  LogicalOp op;
  op.kind = Kind::rekey;
  for (std::string& name : names) op.columns.push_back({std::move(name), 0, 1});
  op.from = std::move(from);
  op.offset = std::move(offset);
  return copy(op, {input});
}

TraId LogicalPlan::filter(TraId input, std::size_t column, Index low, Index high) {
  LogicalOp op;
  op.kind = Kind::filter;
  op.column = column;
  op.low = low;
  op.high = high;
  return copy(op, {input});
}

TraId LogicalPlan::transform(TraId input, Scalar f) {
  LogicalOp op;
  op.kind = Kind::transform;
  op.f = std::move(f);
  return copy(op, {input});
}

TraId LogicalPlan::tile(TraId input, std::size_t dimension, Index pieces, std::string column) {
  LogicalOp op;
  op.kind = Kind::tile;
  op.dimension = dimension;
  op.pieces = pieces;
  op.name = std::move(column);
  return copy(op, {input});
}

TraId LogicalPlan::concat(TraId input, std::size_t column, std::size_t dimension) {
  LogicalOp op;
  op.kind = Kind::concat;
  op.column = column;
  op.dimension = dimension;
  return copy(op, {input});
}

// The columns of the first input that is computed come first, in the order they have there: what is stored can be
// stored in any order, what is computed has its sites already.
void LogicalPlan::rank_columns(LogicalOp& join) const {
  std::vector<TraId> inputs = join.inputs;
  std::stable_partition(inputs.begin(), inputs.end(), [&](TraId id) { return ops_[id].kind != Kind::source; });
  std::vector<std::string> order;
  for (const TraId id : inputs) {
    const std::vector<Column>& columns = ops_[id].columns;
    for (const std::size_t i : by_rank(columns))
      if (position(order, columns[i].name) == order.size()) order.push_back(columns[i].name);
  }
  for (Column& column : join.columns) column.rank = static_cast<std::uint32_t>(position(order, column.name));
}

TraId LogicalPlan::copy(const LogicalOp& original, std::vector<TraId> inputs) {
  LogicalOp op = original;
  op.inputs = std::move(inputs);
  if (op.kind == Kind::source) return add(std::move(op));
  const LogicalOp& input = ops_[op.inputs[0]];
  if (op.kind != Kind::join) op.tuple_bytes = input.tuple_bytes;
  switch (op.kind) {
    case Kind::source:
      break;
    case Kind::join:
      op.columns.clear();
      for (const TraId id : op.inputs)
        for (const Column& column : ops_[id].columns) {
          const auto found = std::find_if(op.columns.begin(), op.columns.end(),
                                          [&](const Column& c) { return c.name == column.name; });
          if (found == op.columns.end()) {
            op.columns.push_back(column);
          } else {
            found->begin = std::max(found->begin, column.begin);
            found->end = std::max(found->begin, std::min(found->end, column.end));
          }
        }
      rank_columns(op);
      op.tuple_flops = kernel_flops(op.kernel, op.rank) / std::max(1.0, op.tuples());
      break;
    case Kind::aggregate:
      for (Column& column : op.columns) column = input.columns[position(names_of(input.columns), column.name)];
      break;
    case Kind::rekey:
      for (std::size_t i = 0; i < op.columns.size(); ++i) {
        const Column& from = input.columns[op.from[i]];
        op.columns[i] = {op.columns[i].name,
                         from.begin + op.offset[i],
                         from.end + op.offset[i],
                         from.first + op.offset[i],
                         from.count,
                         from.rank};
      }
      break;
    case Kind::filter:
      op.columns = input.columns;
      op.columns[op.column].begin = std::max(op.low, input.columns[op.column].begin);
      op.columns[op.column].end =
          std::max(op.columns[op.column].begin, std::min(op.high, input.columns[op.column].end));
      break;
    case Kind::transform:
      op.columns = input.columns;
      break;
    case Kind::tile:
      op.columns = input.columns;
      op.columns.push_back({op.name, 0, op.pieces});
      for (const Column& column : input.columns)
        op.columns.back().rank = std::max(op.columns.back().rank, column.rank + 1);
      op.tuple_bytes /= static_cast<double>(op.pieces);
      break;
    case Kind::concat: {
      op.columns = input.columns;
      op.tuple_bytes *= static_cast<double>(op.columns[op.column].end - op.columns[op.column].begin);
      op.columns.erase(op.columns.begin() + static_cast<std::ptrdiff_t>(op.column));
      break;
    }
  }
  return add(std::move(op));
}

Relation apply_operator(const LogicalOp& op, std::span<const Relation> inputs) {
  switch (op.kind) {
    case Kind::source:
      break;
    case Kind::join:
      return join(op, inputs);
    case Kind::aggregate:
      return aggregate(op, inputs[0]);
    case Kind::rekey:
      return rekey(op, inputs[0]);
    case Kind::filter: {
      Relation result{inputs[0].columns, {}};
      for (const auto& [key, array] : inputs[0].tuples)
        if (op.low <= key[op.column] && key[op.column] < op.high) result.tuples.emplace(key, array);
      return result;
    }
    case Kind::transform: {
      Relation result = inputs[0];
      for (auto& [key, array] : result.tuples)
        for (auto& value : array.values) value = op.f.evaluate(std::span(&value, 1), {});
      return result;
    }
    case Kind::tile:
      return tile(op, inputs[0]);
    case Kind::concat:
      return concat(op, inputs[0]);
  }
  throw InternalError("relation: a source is given, not computed; required another operator");
}

std::vector<Relation> evaluate(const LogicalPlan& plan, const std::map<std::string, Relation>& sources) {
  std::vector<Relation> values;
  for (TraId id = 0; id < plan.size(); ++id) {
    const LogicalOp& op = plan.op(id);
    if (op.kind == Kind::source) {
      const auto found = sources.find(op.name);
      if (found == sources.end()) throw InputError(fmt::format("relation '{}': found no value; required one", op.name));
      values.push_back(found->second);
      continue;
    }
    std::vector<Relation> inputs;
    for (const TraId input : op.inputs) inputs.push_back(values[input]);
    values.push_back(apply_operator(op, inputs));
  }
  return values;
}

Relation cut_relation(const Dense& dense, const Box& box, const std::vector<std::string>& names) {
  Relation result;
  for (std::size_t i = 0; i < box.size(); ++i)
    if (box[i] > 1) result.columns.push_back(names[i]);
  for_each_index(Rect::whole(box), [&](const std::vector<Index>& block) {
    Key key;
    for (std::size_t i = 0; i < box.size(); ++i)
      if (box[i] > 1) key.push_back(block[i]);
    result.tuples.emplace(std::move(key), cut(dense, Rect::whole(dense.shape), block_rect(dense.shape, box, block)));
  });
  return result;
}

std::string to_string(const LogicalOp& op) {
  std::vector<std::string> keys;
  for (const Column& c : op.columns)
    keys.push_back(c.begin == 0 ? fmt::format("{}:{}", c.name, c.end)
                                : fmt::format("{}:{}..{}", c.name, c.begin, c.end));
  const std::string key = fmt::format("({})", fmt::join(keys, ", "));
  switch (op.kind) {
    case Kind::source:
      return fmt::format("{} {}", op.name, key);
    case Kind::join: {
      std::vector<std::string> arguments;
      for (const auto& operand : op.kernel.operands) {
        std::string text;
        for (const std::uint32_t label : operand) text += (text.empty() ? "" : ",") + op.kernel.labels[label];
        arguments.push_back("[" + text + "]");
      }
      return fmt::format("Join {} by {}{}", key, op.kernel.aggregate ? "einsum " : "",
                         op.kernel.join.to_string(arguments));
    }
    case Kind::aggregate:
      return fmt::format("Agg {} by {}", key, to_string(op.aggregate));
    case Kind::rekey:
      return fmt::format("ReKey {}", key);
    case Kind::filter:
      return fmt::format("Filter {}", key);
    case Kind::transform:
      return fmt::format("Transform {} by {}", key, op.f.to_string(std::vector<std::string>{"x"}));
    case Kind::tile:
      return fmt::format("Tile {} dimension {} in {}", key, op.dimension, op.pieces);
    case Kind::concat:
      return fmt::format("Concat {} dimension {}", key, op.dimension);
  }
  throw InternalError("relation: unknown operator; required one of LogicalOp::Kind");
}

}  // namespace doppler::program
