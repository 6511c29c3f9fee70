#include "doppler/program/relational/physical.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using Kind = LogicalOp::Kind;
using Mask = std::uint32_t;

std::vector<Key> keys_of(const LogicalOp& op) {
  Rect space;
  for (const Column& c : op.columns) space.begin.push_back(c.begin), space.end.push_back(c.end);
  std::vector<Key> keys;
  for_each_index(space, [&](const Key& key) { keys.push_back(key); });
  return keys;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// How a distribution of an operator's result is reached. Distributions are numbered: 0 … 2ⁿ-1 are sets of the
// n key columns, 2ⁿ is "everywhere".
struct Way {
  double cost = kNever;              // of the operator and all below it
  std::vector<std::uint32_t> wants;  // distribution per input
  bool two_phase = false;
};

class Optimiser {
 public:
  Optimiser(const LogicalPlan& plan, unsigned sites) : plan_(plan), sites_(sites), readers_(plan.size(), 0) {
    for (TraId id = 0; id < plan.size(); ++id)
      for (const TraId input : plan.op(id).inputs) ++readers_[input];
  }

  PhysicalPlan run() {
    result_.alternatives.resize(plan_.size());
    for (TraId id = 0; id < plan_.size(); ++id) {
      const LogicalOp& op = plan_.op(id);
      if (op.columns.size() > kMostColumns)
        throw InputError(fmt::format("explain: a relation with {} cut labels; required at most {}", op.columns.size(),
                                     kMostColumns));
      ways_.emplace_back(everywhere(id) + 1);
      consider(id, op);
      finish(id);
    }
    extract();
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kMostColumns = 8;

  std::uint32_t everywhere(TraId id) const { return Mask{1} << plan_.op(id).columns.size(); }

  double move_cost(TraId id, std::uint32_t from, std::uint32_t to) const {
    return moved_bytes(plan_.op(id), distribution(id, from), distribution(id, to), sites_);
  }

  // The input's cheapest cost with its tuples brought to `want`.
  double input_cost(TraId input, std::uint32_t want) const { return reach_[input][want].first; }

  void offer(TraId id, std::uint32_t distribution, Way way, const std::string& text) {
    if (!text.empty()) {
      auto& known = result_.alternatives[id];
      const auto same = std::find_if(known.begin(), known.end(), [&](const Alternative& a) { return a.text == text; });
      if (same == known.end())
        known.push_back({text, way.cost});
      else
        same->moved = std::min(same->moved, way.cost);
    }
    if (way.cost < ways_[id][distribution].cost) ways_[id][distribution] = std::move(way);
  }

  // Bits of the columns of one relation as bits of another; none if one is missing or counts differently.
  std::optional<Mask> translate(Mask mask, const LogicalOp& from, const LogicalOp& to) const {
    Mask result = 0;
    for (std::size_t i = 0; i < from.columns.size(); ++i) {
      if (!(mask >> i & 1)) continue;
      std::size_t k = 0;
      while (k < to.columns.size() && to.columns[k].name != from.columns[i].name) ++k;
      if (k == to.columns.size() || to.columns[k].first != from.columns[i].first ||
          to.columns[k].count != from.columns[i].count)
        return std::nullopt;
      result |= Mask{1} << k;
    }
    return result;
  }

  std::string column_list(const LogicalOp& op, Mask mask) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < op.columns.size(); ++i)
      if (mask >> i & 1) names.push_back(op.columns[i].name);
    return fmt::format("({})", fmt::join(names, ", "));
  }

  void consider(TraId id, const LogicalOp& op) {
    switch (op.kind) {
      case Kind::source:
        for (Mask mask = 0; mask < everywhere(id); ++mask) offer(id, mask, {0, {}, false}, "");
        return;
      case Kind::join:
        return consider_join(id, op);
      case Kind::aggregate:
        return consider_aggregate(id, op);
      default:
        return consider_unary(id, op);
    }
  }

  // Bytes alone would put everything on one site. So joins and aggregations keep as many sites busy as any of
  // their distributions can.
  double busy_sites(const LogicalOp& op, Mask mask) const {
    double used = 1;
    for (std::size_t i = 0; i < op.columns.size(); ++i)
      if (mask >> i & 1) used *= static_cast<double>(op.columns[i].end - op.columns[i].begin);
    return std::min(used, static_cast<double>(sites_));
  }
  bool spreads(const LogicalOp& op, Mask mask) const {
    return busy_sites(op, mask) >= busy_sites(op, (Mask{1} << op.columns.size()) - 1);
  }
  // A join can be spread along the columns of whichever input is not broadcast.
  double most_busy_sites(const LogicalOp& join) const {
    double most = 1;
    for (const TraId input : join.inputs)
      most = std::max(most, busy_sites(join, translate(everywhere(input) - 1, plan_.op(input), join).value_or(0)));
    return most;
  }

  void consider_join(TraId id, const LogicalOp& op) {
    const auto count = static_cast<std::uint32_t>(op.inputs.size());
    const double most = most_busy_sites(op);
    for (Mask spread = 0; spread < Mask{1} << count; ++spread)  // inputs that are broadcast
      for (Mask mask = 0; mask < everywhere(id); ++mask) {
        if (busy_sites(op, mask) < most) continue;
        const bool all = spread + 1 == Mask{1} << count;
        if (all && op.tuples() > 1) break;  // every site would compute everything
        Way way{0, {}, false};
        std::vector<std::string> broadcast;
        for (std::uint32_t k = 0; k < count; ++k) {
          const TraId input = op.inputs[k];
          const bool is_spread = spread >> k & 1;
          const std::optional<Mask> want =
              is_spread ? std::optional(everywhere(input)) : translate(mask, op, plan_.op(input));
          way.cost = want ? way.cost + input_cost(input, *want) : kNever;
          way.wants.push_back(want.value_or(0));
          if (is_spread) broadcast.push_back(fmt::format("input {}", k));
        }
        if (way.cost == kNever) continue;
        std::string text = broadcast.empty() ? "" : fmt::format("broadcast {}", fmt::join(broadcast, " and "));
        if (!all) text += fmt::format("{}partition on {}", text.empty() ? "co-" : ", ", column_list(op, mask));
        offer(id, all ? everywhere(id) : mask, std::move(way), text);
      }
  }

  void consider_aggregate(TraId id, const LogicalOp& op) {
    const TraId input = op.inputs[0];
    const LogicalOp& below = plan_.op(input);
    offer(id, everywhere(id), {input_cost(input, everywhere(input)), {everywhere(input)}, false},
          "aggregate everywhere");
    for (Mask mask = 0; mask < everywhere(id); ++mask) {
      if (!spreads(op, mask)) continue;
      const Mask want = translate(mask, op, below).value();
      offer(id, mask, {input_cost(input, want), {want}, false},
            "gather each group, aggregate once on " + column_list(op, mask));
    }
    for (Mask from = 0; from < everywhere(input); ++from)
      for (Mask to = 0; to < everywhere(id); ++to) {
        if (!spreads(op, to)) continue;
        const double cost = input_cost(input, from) + partial_moves(id, op, input, from, to) * op.tuple_bytes;
        offer(id, to, {cost, {from}, true}, "aggregate locally, shuffle, aggregate on " + column_list(op, to));
      }
  }

  // Partial results that are not yet on the site of their group.
  double partial_moves(TraId id, const LogicalOp& op, TraId input, Mask from, Mask to) const {
    const LogicalOp& below = plan_.op(input);
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < op.columns.size(); ++i) {
      const Mask bit = translate(Mask{1} << i, op, below).value();
      positions.push_back(static_cast<std::size_t>(__builtin_ctz(bit)));
    }
    std::set<std::pair<unsigned, Key>> partials;
    for (const Key& key : keys_of(below)) {
      Key group;
      for (const std::size_t p : positions) group.push_back(key[p]);
      partials.emplace(site_of(below.columns, from, key, sites_), std::move(group));
    }
    double moves = 0;
    for (const auto& [site, group] : partials)
      moves += site != site_of(plan_.op(id).columns, to, group, sites_) ? 1 : 0;
    return moves;
  }

  // Filter, transform, rekey, tile and concat keep tuples where they are. A concat needs each row in one
  // place.
  void consider_unary(TraId id, const LogicalOp& op) {
    const TraId input = op.inputs[0];
    offer(id, everywhere(id), {input_cost(input, everywhere(input)), {everywhere(input)}, false}, "");
    for (Mask from = 0; from < everywhere(input); ++from)
      if (const std::optional<Mask> mask = carried(op, from))
        offer(id, *mask, {input_cost(input, from), {from}, false}, "");
  }

  // The distribution after a unary operator on tuples distributed by `from`; none if it cannot say by the new
  // key.
  static std::optional<Mask> carried(const LogicalOp& op, Mask from) {
    if (op.kind == Kind::concat) {
      if (from >> op.column & 1) return std::nullopt;
      const Mask low = from & ((Mask{1} << op.column) - 1);
      return low | (from & ~low) >> 1;
    }
    if (op.kind != Kind::rekey) return from;
    Mask mask = 0;
    for (std::size_t i = 0; i < op.from.size(); ++i)
      if (from >> op.from[i] & 1) mask |= Mask{1} << i;
    // Offsets keep positions in the box; another order of columns changes the row-major position.
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < op.from.size(); ++i)
      if (mask >> i & 1) order.push_back(op.from[i]);
    return std::is_sorted(order.begin(), order.end()) ? std::optional(mask) : std::nullopt;
  }

  // Fills in what movement can reach. A result with several readers is fixed at its cheapest.
  void finish(TraId id) {
    auto& ways = ways_[id];
    const auto best = static_cast<std::uint32_t>(
        std::min_element(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.cost < b.cost; }) -
        ways.begin());
    DOPPLER_CHECK(ways[best].cost < kNever, "operator {} has no distribution", id);
    best_.push_back(best);
    reach_.emplace_back();
    const bool fixed = readers_[id] != 1;
    for (std::uint32_t to = 0; to < ways.size(); ++to) {
      std::pair<double, std::uint32_t> cheapest = {kNever, best};
      for (std::uint32_t from = 0; from < ways.size(); ++from) {
        if (ways[from].cost == kNever || (fixed && from != best)) continue;
        const double cost = (fixed ? 0 : ways[from].cost) + move_cost(id, from, to);
        if (cost < cheapest.first) cheapest = {cost, from};
      }
      reach_[id].push_back(cheapest);
    }
    auto& known = result_.alternatives[id];
    std::stable_sort(known.begin(), known.end(),
                     [](const Alternative& a, const Alternative& b) { return a.moved < b.moved; });
  }

  Distribution distribution(TraId id, std::uint32_t index) const {
    return index == everywhere(id) ? Distribution{true, 0} : Distribution{false, index};
  }

  std::uint32_t add(PhysicalOp op) {
    result_.moved += op.moved;
    result_.ops.push_back(std::move(op));
    return static_cast<std::uint32_t>(result_.ops.size() - 1);
  }

  // From the readers down: which distribution each operator computes; then bottom-up: the operators.
  void extract() {
    std::vector<std::uint32_t> computed(plan_.size());
    std::vector<std::uint32_t> wanted(plan_.size(), std::numeric_limits<std::uint32_t>::max());
    for (TraId id = plan_.size(); id-- > 0;) {
      computed[id] = readers_[id] == 1 ? reach_[id][wanted[id]].second : best_[id];
      const Way& way = ways_[id][computed[id]];
      for (std::size_t k = 0; k < plan_.op(id).inputs.size(); ++k) wanted[plan_.op(id).inputs[k]] = way.wants[k];
    }
    result_.result_of.resize(plan_.size());
    for (TraId id = 0; id < plan_.size(); ++id) {
      const LogicalOp& op = plan_.op(id);
      const Way& way = ways_[id][computed[id]];
      std::vector<std::uint32_t> inputs;
      for (std::size_t k = 0; k < op.inputs.size(); ++k)
        inputs.push_back(moved_to(op.inputs[k], computed[op.inputs[k]], way.wants[k]));
      result_.result_of[id] =
          way.two_phase ? add_two_phase(id, op, inputs[0], way.wants[0], computed[id])
                        : add({PhysicalOp::Kind::local, id, inputs, distribution(id, computed[id]), 0, false});
    }
  }

  std::uint32_t add_two_phase(TraId id, const LogicalOp& op, std::uint32_t input, Mask from, Mask to) {
    const std::uint32_t partial = add({PhysicalOp::Kind::local, id, {input}, {}, 0, true});
    const double moved = partial_moves(id, op, op.inputs[0], from, to) * op.tuple_bytes;
    const std::uint32_t shuffled = add({PhysicalOp::Kind::shuffle, id, {partial}, {false, to}, moved, false});
    return add({PhysicalOp::Kind::local, id, {shuffled}, {false, to}, 0, false});
  }

  std::uint32_t moved_to(TraId id, std::uint32_t from, std::uint32_t to) {
    if (from == to) return result_.result_of[id];
    const auto known = movements_.find({id, to});
    if (known != movements_.end()) return known->second;
    const auto kind = to == everywhere(id) ? PhysicalOp::Kind::broadcast : PhysicalOp::Kind::shuffle;
    return movements_[{id, to}] =
               add({kind, id, {result_.result_of[id]}, distribution(id, to), move_cost(id, from, to), false});
  }

  const LogicalPlan& plan_;
  unsigned sites_;
  std::vector<int> readers_;
  std::vector<std::vector<Way>> ways_;                                // by operator and distribution
  std::vector<std::vector<std::pair<double, std::uint32_t>>> reach_;  // cost, and from which distribution
  std::vector<std::uint32_t> best_;
  std::map<std::pair<TraId, std::uint32_t>, std::uint32_t> movements_;  // made once however many want them
  PhysicalPlan result_;
};

}  // namespace

unsigned site_of(const std::vector<Column>& columns, std::uint32_t chosen, const Key& key, unsigned sites) {
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!(chosen >> i & 1)) continue;
    position =
        position * static_cast<std::uint64_t>(columns[i].count) + static_cast<std::uint64_t>(key[i] - columns[i].first);
  }
  return static_cast<unsigned>(position % sites);
}

double moved_bytes(const LogicalOp& op, Distribution from, Distribution to, unsigned sites) {
  if (from == to || from.everywhere) return 0;
  if (to.everywhere) return op.bytes() * (sites - 1);
  double moved = 0;
  for (const Key& key : keys_of(op))
    if (site_of(op.columns, from.columns, key, sites) != site_of(op.columns, to.columns, key, sites))
      moved += op.tuple_bytes;
  return moved;
}

PhysicalPlan optimise(const LogicalPlan& plan, unsigned sites) {
  DOPPLER_CHECK(sites >= 1, "found no sites");
  return Optimiser(plan, sites).run();
}

void simplify(const LogicalPlan& logical, PhysicalPlan& plan, unsigned sites) {
  std::vector<std::uint32_t> moved_to;  // by old operator
  std::vector<PhysicalOp> kept;
  plan.moved = 0;
  for (PhysicalOp op : plan.ops) {
    for (std::uint32_t& input : op.inputs) input = moved_to[input];
    if (op.kind != PhysicalOp::Kind::local) {
      const PhysicalOp& before = kept[op.inputs[0]];
      if (before.kind != PhysicalOp::Kind::local && !kept[before.inputs[0]].partial) op.inputs = before.inputs;
      const PhysicalOp& source = kept[op.inputs[0]];
      if (!source.partial) {
        if (source.result == op.result) {
          moved_to.push_back(op.inputs[0]);
          continue;
        }
        op.moved = moved_bytes(logical.op(op.logical), source.result, op.result, sites);
      }
    }
    moved_to.push_back(static_cast<std::uint32_t>(kept.size()));
    kept.push_back(std::move(op));
  }
  // Movements that nobody reads any more.
  std::vector<char> read(kept.size(), 0);
  for (std::uint32_t& result : plan.result_of) read[result = moved_to[result]] = 1;
  for (const PhysicalOp& op : kept)
    for (const std::uint32_t input : op.inputs) read[input] = 1;
  std::vector<std::uint32_t> final_id(kept.size());
  plan.ops.clear();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!read[i]) continue;
    for (std::uint32_t& input : kept[i].inputs) input = final_id[input];
    final_id[i] = static_cast<std::uint32_t>(plan.ops.size());
    plan.moved += kept[i].moved;
    plan.ops.push_back(std::move(kept[i]));
  }
  for (std::uint32_t& result : plan.result_of) result = final_id[result];
}

}  // namespace doppler::program
