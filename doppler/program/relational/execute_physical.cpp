#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/program/relational/physical.h"

namespace doppler::program {
namespace {

using Sites = std::vector<Relation>;  // what each site has

Sites store(const LogicalOp& op, const Relation& whole, Distribution distribution, unsigned sites) {
  Sites result(sites, Relation{whole.columns, {}});
  for (const auto& [key, array] : whole.tuples)
    for (unsigned site = 0; site < sites; ++site)
      if (distribution.everywhere || site_of(op.columns, distribution.columns, key, sites) == site)
        result[site].tuples.emplace(key, array);
  return result;
}

// Sends tuples where `to` says. Partial results of one group meet on a site without being equal, so they are
// folded on arrival.
Sites move(const LogicalOp& op, const Sites& from, bool everywhere_before, Distribution to, double& moved) {
  const auto sites = static_cast<unsigned>(from.size());
  Sites result(sites, Relation{from[0].columns, {}});
  for (unsigned site = 0; site < sites; ++site)
    for (const auto& [key, array] : from[site].tuples)
      for (unsigned target = 0; target < sites; ++target) {
        if (!to.everywhere && site_of(op.columns, to.columns, key, sites) != target) continue;
        if (everywhere_before && site != target) continue;  // it has its own copy
        if (site != target) moved += op.tuple_bytes;
        const auto [found, fresh] = result[target].tuples.try_emplace(key, array);
        if (fresh) continue;
        DOPPLER_CHECK(op.kind == LogicalOp::Kind::aggregate, "a tuple is on two sites");
        for (std::size_t i = 0; i < array.values.size(); ++i)
          found->second.values[i] = fold(op.aggregate, found->second.values[i], array.values[i]);
      }
  return result;
}

// Sends tuples to the sites that need them; those that have one keep it.
Sites multicast(const LogicalOp& op, const Sites& from, bool everywhere_before,
                const std::map<Key, std::vector<char>>& needing, double& moved) {
  Sites result = from;
  for (std::size_t site = 0; site < from.size() && !everywhere_before; ++site)
    for (const auto& [key, array] : from[site].tuples)
      for (std::size_t target = 0; target < from.size(); ++target) {
        if (target == site || needing.at(key)[target] == 0) continue;
        moved += op.tuple_bytes;
        result[target].tuples.emplace(key, array);
      }
  return result;
}

std::string describe(const LogicalOp& op, Distribution distribution) {
  if (distribution.everywhere) return "ALL";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < op.columns.size(); ++i)
    if (distribution.columns >> i & 1) names.push_back(op.columns[i].name);
  return fmt::format("PART({})", fmt::join(names, ", "));
}

std::string physical_name(const LogicalOp& op) {
  switch (op.kind) {
    case LogicalOp::Kind::source:
      return "Stored";
    case LogicalOp::Kind::join:
      return "LocalJoin";
    case LogicalOp::Kind::aggregate:
      return "LocalAgg";
    case LogicalOp::Kind::filter:
      return "LocalFilter";
    case LogicalOp::Kind::rekey:
    case LogicalOp::Kind::transform:
      return "LocalMap";
    case LogicalOp::Kind::tile:
      return "LocalTile";
    case LogicalOp::Kind::concat:
      return "LocalConcat";
  }
  throw InternalError("relation: unknown operator; required one of LogicalOp::Kind");
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<Bytes>(bytes)); }

template <typename Ids>
std::string references(char prefix, const Ids& ids) {
  std::vector<std::string> names;
  for (const auto id : ids) names.push_back(fmt::format("{}{}", prefix, id));
  return names.empty() ? "" : fmt::format(" of {}", fmt::join(names, ", "));
}

}  // namespace

Execution execute(const LogicalPlan& logical, const PhysicalPlan& plan, const std::map<std::string, Relation>& sources,
                  unsigned sites) {
  Execution execution;
  std::vector<Sites> values;
  for (const PhysicalOp& op : plan.ops) {
    const LogicalOp& meaning = logical.op(op.logical);
    if (op.kind == PhysicalOp::Kind::multicast) {
      const PhysicalOp& before = plan.ops[op.inputs[0]];
      const auto needing = sites_needing(meaning, logical.op(op.reader), op.result, sites);
      values.push_back(multicast(meaning, values[op.inputs[0]], before.result.everywhere, needing, execution.moved));
    } else if (op.kind != PhysicalOp::Kind::local) {
      const PhysicalOp& before = plan.ops[op.inputs[0]];
      values.push_back(
          move(meaning, values[op.inputs[0]], !before.partial && before.result.everywhere, op.result, execution.moved));
    } else if (meaning.kind == LogicalOp::Kind::source) {
      values.push_back(store(meaning, sources.at(meaning.name), op.result, sites));
    } else {
      values.emplace_back();
      for (unsigned site = 0; site < sites; ++site) {
        std::vector<Relation> inputs;
        for (const std::uint32_t input : op.inputs) inputs.push_back(values[input][site]);
        values.back().push_back(apply_operator(meaning, inputs));
        if (meaning.kind == LogicalOp::Kind::join && !op.result.everywhere)
          std::erase_if(values.back().back().tuples, [&](const auto& tuple) {
            return site_of(meaning.columns, op.result.columns, tuple.first, sites) != site;
          });
      }
    }
  }
  for (const std::uint32_t id : plan.result_of) {
    Relation whole{values[id][0].columns, {}};
    for (Relation& part : values[id])
      for (const auto& [key, array] : part.tuples) whole.tuples.try_emplace(key, array);
    execution.results.push_back(std::move(whole));
  }
  return execution;
}

std::string explain(const LogicalPlan& logical, const PhysicalPlan& plan) {
  std::string text = "logical plan\n";
  for (TraId id = 0; id < logical.size(); ++id) {
    const LogicalOp& op = logical.op(id);
    text += fmt::format("  r{:<4} {}{}   {} × {}\n", id, to_string(op), references('r', op.inputs), op.tuples(),
                        bytes_text(op.tuple_bytes));
  }
  const bool timed = plan.seconds > 0;
  text += fmt::format("\nphysical plan, {} between sites{}\n", bytes_text(plan.moved),
                      timed ? ", " + format_seconds(plan.seconds) + " one after the other" : "");
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const PhysicalOp& op = plan.ops[i];
    const LogicalOp& meaning = logical.op(op.logical);
    const std::string name = op.kind == PhysicalOp::Kind::broadcast   ? "Broadcast"
                             : op.kind == PhysicalOp::Kind::shuffle   ? "Shuffle"
                             : op.kind == PhysicalOp::Kind::multicast ? "Multicast"
                                                                      : physical_name(meaning);
    text += fmt::format("  p{:<4} r{:<4} {}{} -> {}{}\n", i, op.logical, name, references('p', op.inputs),
                        op.partial ? "partial results"
                        : op.kind == PhysicalOp::Kind::multicast
                            ? fmt::format("where r{} is {}", op.reader, describe(logical.op(op.reader), op.result))
                            : describe(meaning, op.result),
                        op.moved > 0 ? "   moves " + bytes_text(op.moved) : "");
  }
  text += fmt::format("\nalternatives: {}bytes between sites for the relation and all below it\n",
                      timed ? "seconds and " : "");
  for (TraId id = 0; id < logical.size(); ++id) {
    if (plan.alternatives[id].empty()) continue;
    text += fmt::format("  r{} {}\n", id, to_string(logical.op(id)));
    for (const Alternative& alternative : plan.alternatives[id])
      text +=
          fmt::format("    {}{:>10}  {}\n", timed ? fmt::format("{:>9}  ", format_seconds(alternative.seconds)) : "",
                      bytes_text(alternative.moved), alternative.text);
  }
  return text;
}

}  // namespace doppler::program
