#include <fmt/format.h>

#include "doppler/program/relational/relation.h"

namespace doppler::program {
namespace {

class Compiler {
 public:
  Compiler(const Program& program, const Plan& plan) : p_(program), plan_(plan), names_(program.size()) {
    result_.relation_of.assign(program.size(), 0);
    result_.join_of.assign(program.size(), 0);
  }

  Compiled run() {
    const std::vector<char> needed = live(p_);
    for (ExprId id = 0; id < p_.size(); ++id) {
      const Node& node = p_.node(id);
      if (!needed[id]) continue;
      if (const Einsum* einsum = node.as<Einsum>()) {
        add_einsum(id, node, *einsum);
      } else if (node.as<Formation>() != nullptr) {  // the aggregation has finished it
        result_.relation_of[id] = result_.relation_of[node.inputs[0]];
        names_[id] = names_[node.inputs[0]];
      }
    }
    return std::move(result_);
  }

 private:
  bool relational(ExprId id) const {
    return p_.node(id).as<Einsum>() != nullptr || p_.node(id).as<Formation>() != nullptr;
  }

  // Adds a stored tensor, cut by `box` with these names for its dimensions.
  TraId stored(ExprId id, const Box& box, const std::vector<std::string>& names) {
    std::vector<Column> columns;
    for (std::size_t i = 0; i < box.size(); ++i)
      if (box[i] > 1) columns.push_back({names[i], 0, box[i]});
    const std::string name = fmt::format("{}/{}", p_.node(id).name, result_.sources.size());
    result_.sources[name] = {id, box};
    return result_.logical.source(name, columns,
                                  static_cast<double>(p_.node(id).bytes()) / static_cast<double>(product(box)));
  }

  // Returns the relation of an expression with columns named by the reader's labels, cut as the reader wants it. New
  // cuts come before old ones are undone, so that between two cuts each site sends every other just what that one
  // needs.
  TraId operand(ExprId id, const Box& wanted, const std::vector<std::string>& labels) {
    if (!relational(id)) return stored(id, wanted, labels);
    LogicalPlan& logical = result_.logical;
    TraId relation = result_.relation_of[id];
    Box held = plan_[id];
    held.resize(wanted.size());
    const auto column_of = [&](const std::string& name) {
      const auto& columns = logical.op(relation).columns;
      std::size_t i = 0;
      while (columns[i].name != name) ++i;
      return i;
    };
    std::vector<std::string> names, present;
    std::vector<std::size_t> from;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (held[i] == 1) continue;
      names.push_back(labels[i]);
      from.push_back(column_of(names_[id][i]));
    }
    for (const Column& column : logical.op(relation).columns) present.push_back(column.name);
    if (present != names) relation = logical.rekey(relation, names, from, std::vector<Index>(from.size(), 0));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (held[i] == 1 && wanted[i] > 1) relation = logical.tile(relation, i, wanted[i], labels[i]);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (held[i] == 1 || held[i] == wanted[i]) continue;
      relation = logical.concat(relation, column_of(labels[i]), i);
      if (wanted[i] > 1) relation = logical.tile(relation, i, wanted[i], labels[i]);
    }
    return relation;
  }

  void add_einsum(ExprId id, const Node& node, const Einsum& einsum) {
    std::vector<TraId> inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      Box wanted;
      std::vector<std::string> labels;
      for (const std::uint32_t label : einsum.operands[k]) {
        wanted.push_back(plan_[id][label]);
        labels.push_back(einsum.labels[label]);
      }
      inputs.push_back(operand(node.inputs[k], wanted, labels));
    }
    const std::size_t rank = node.shape.size();
    names_[id].assign(einsum.labels.begin(), einsum.labels.begin() + static_cast<std::ptrdiff_t>(rank));
    // Labels that no input has come out whole and are cut after the join.
    std::vector<char> joined(einsum.labels.size(), 0);
    for (const auto& labels : einsum.operands)
      for (const std::uint32_t label : labels) joined[label] = 1;
    std::vector<std::string> group;
    double blocks = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      if (!joined[i] || plan_[id][i] == 1) continue;
      group.push_back(einsum.labels[i]);
      blocks *= static_cast<double>(plan_[id][i]);
    }
    TraId relation = result_.logical.join(inputs, einsum, rank, static_cast<double>(node.bytes()) / blocks);
    result_.join_of[id] = relation;
    if (einsum.aggregate) relation = result_.logical.aggregate(relation, group, *einsum.aggregate);
    for (std::size_t i = 0; i < rank; ++i)
      if (!joined[i] && plan_[id][i] > 1) relation = result_.logical.tile(relation, i, plan_[id][i], einsum.labels[i]);
    result_.relation_of[id] = relation;
  }

  const Program& p_;
  const Plan& plan_;
  std::vector<std::vector<std::string>> names_;  // per expression, the label of each dimension
  Compiled result_;
};

}  // namespace

Compiled compile(const Program& program, const Plan& plan) {
  check(program, plan);
  return Compiler(program, plan).run();
}

}  // namespace doppler::program
