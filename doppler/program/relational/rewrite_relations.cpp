#include <algorithm>
#include <optional>

#include "doppler/program/relational/relation.h"

namespace doppler::program {
namespace {

using Kind = LogicalOp::Kind;

bool is_linear(const Scalar& f) {
  const Scalar zero[] = {0.0};
  return f.derivative(0).is_constant() && f.substitute(zero).is_constant(0);
}

std::optional<std::size_t> find_column(const LogicalOp& op, const std::string& name) {
  for (std::size_t i = 0; i < op.columns.size(); ++i)
    if (op.columns[i].name == name) return i;
  return std::nullopt;
}

// Rebuilds a plan bottom-up, replacing an operator and the one below it where a rule knows better; only where
// nobody else reads the one below, or it would be computed twice.
class Pass {
 public:
  Pass(const LogicalPlan& plan, const std::vector<TraId>& roots)
      : old_(plan), readers_(plan.size(), 0), moved_(plan.size(), 0) {
    std::vector<char> needed(plan.size(), 0);
    for (const TraId root : roots) needed[root] = 1, ++readers_[root];
    for (TraId id = plan.size(); id-- > 0;)
      if (needed[id])
        for (const TraId input : plan.op(id).inputs) needed[input] = 1, ++readers_[input];
    for (TraId id = 0; id < plan.size(); ++id)
      if (needed[id]) moved_[id] = rebuild(id);
  }

  LogicalPlan take() { return std::move(new_); }
  TraId moved(TraId old) const { return moved_[old]; }
  bool changed() const { return changed_; }

 private:
  TraId rebuild(TraId id) {
    const LogicalOp& op = old_.op(id);
    std::vector<TraId> inputs;
    for (const TraId input : op.inputs) inputs.push_back(moved_[input]);
    if (inputs.size() == 1 && readers_[op.inputs[0]] == 1)
      if (const std::optional<TraId> better = simpler(op, LogicalOp(new_.op(inputs[0])))) {
        changed_ = true;
        return *better;
      }
    return new_.copy(op, std::move(inputs));
  }

  // `op` reads `below`, which reads relations of the new plan.
  std::optional<TraId> simpler(const LogicalOp& op, const LogicalOp& below) {
    switch (op.kind) {
      case Kind::transform:
        if (below.kind == Kind::transform) {
          const Scalar inner[] = {below.f};
          return new_.transform(below.inputs[0], op.f.substitute(inner));
        }
        return std::nullopt;
      case Kind::rekey:
        return below.kind == Kind::rekey ? std::optional(fused_rekey(op, below)) : std::nullopt;
      case Kind::filter:
        return filtered(op, below);
      case Kind::aggregate:
        if (below.kind == Kind::transform && op.aggregate == Aggregate::sum && is_linear(below.f))
          return new_.transform(new_.copy(op, below.inputs), below.f);
        return std::nullopt;
      case Kind::tile:
        return below.kind == Kind::concat ? undone_concat(op, below) : std::nullopt;
      case Kind::concat:
        if (below.kind == Kind::tile && below.dimension == op.dimension && op.column + 1 == below.columns.size())
          return below.inputs[0];
        return std::nullopt;
      case Kind::source:
      case Kind::join:
        return std::nullopt;
    }
    return std::nullopt;
  }

  TraId fused_rekey(const LogicalOp& op, const LogicalOp& below) {
    LogicalOp fused = op;
    for (std::size_t i = 0; i < op.from.size(); ++i) {
      fused.from[i] = below.from[op.from[i]];
      fused.offset[i] = op.offset[i] + below.offset[op.from[i]];
    }
    return new_.copy(fused, below.inputs);
  }

  std::optional<TraId> filtered(const LogicalOp& op, const LogicalOp& below) {
    switch (below.kind) {
      case Kind::filter:
        if (below.column != op.column) return std::nullopt;
        return new_.filter(below.inputs[0], op.column, std::max(op.low, below.low), std::min(op.high, below.high));
      case Kind::rekey: {
        const Index offset = below.offset[op.column];
        return new_.copy(below,
                         {new_.filter(below.inputs[0], below.from[op.column], op.low - offset, op.high - offset)});
      }
      case Kind::transform:
        return new_.copy(below, {new_.filter(below.inputs[0], op.column, op.low, op.high)});
      case Kind::aggregate:
      case Kind::join: {
        const std::string& name = below.columns[op.column].name;
        std::vector<TraId> inputs;
        for (const TraId input : below.inputs) {
          const std::optional<std::size_t> column = find_column(new_.op(input), name);
          inputs.push_back(column ? new_.filter(input, *column, op.low, op.high) : input);
        }
        return new_.copy(below, std::move(inputs));
      }
      default:
        return std::nullopt;
    }
  }

  // The column comes back as the last one.
  std::optional<TraId> undone_concat(const LogicalOp& op, const LogicalOp& below) {
    const LogicalOp original = new_.op(below.inputs[0]);
    const Column& column = original.columns[below.column];
    if (op.dimension != below.dimension || column.begin != 0 || column.end != op.pieces) return std::nullopt;
    std::vector<std::string> names;
    std::vector<std::size_t> from;
    for (std::size_t i = 0; i < original.columns.size(); ++i)
      if (i != below.column) names.push_back(original.columns[i].name), from.push_back(i);
    names.push_back(op.name);
    from.push_back(below.column);
    return new_.rekey(below.inputs[0], std::move(names), from, std::vector<Index>(from.size(), 0));
  }

  const LogicalPlan& old_;
  LogicalPlan new_;
  std::vector<int> readers_;
  std::vector<TraId> moved_;
  bool changed_ = false;
};

}  // namespace

LogicalPlan rewrite(const LogicalPlan& plan, std::vector<TraId>& roots) {
  LogicalPlan current = plan;
  while (true) {
    Pass pass(current, roots);
    for (TraId& root : roots) root = pass.moved(root);
    current = pass.take();
    if (!pass.changed()) return current;
  }
}

std::vector<TraId> roots_of(const LogicalPlan& plan) {
  std::vector<char> read(plan.size(), 0);
  for (TraId id = 0; id < plan.size(); ++id)
    for (const TraId input : plan.op(id).inputs) read[input] = 1;
  std::vector<TraId> roots;
  for (TraId id = 0; id < plan.size(); ++id)
    if (!read[id]) roots.push_back(id);
  return roots;
}

}  // namespace doppler::program
