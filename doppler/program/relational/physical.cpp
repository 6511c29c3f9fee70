#include "doppler/program/relational/physical.h"

#include <algorithm>
#include <cmath>
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
  double cost = kNever;              // of the operator and all below it: bytes, or seconds where there are Speeds
  std::vector<std::uint32_t> wants;  // distribution per input
  bool two_phase = false;
  double moved = 0;  // bytes, of the operator and all below it
};

// A distribution that movement reaches, from the one that is computed.
struct Reached {
  double cost = kNever;
  std::uint32_t from = 0;
  double moved = 0;
};

class Optimiser {
 public:
  // Without `speeds` bytes count, with them seconds.
  Optimiser(const LogicalPlan& plan, unsigned sites, const Speeds* speeds)
      : plan_(plan), sites_(sites), speeds_(speeds), readers_(plan.size(), 0) {
    for (TraId id = 0; id < plan.size(); ++id)
      for (const TraId input : plan.op(id).inputs) ++readers_[input];
  }

  PhysicalPlan run() {
    result_.alternatives.resize(plan_.size());
    for (TraId id = 0; id < plan_.size(); ++id) {
      const LogicalOp& op = plan_.op(id);
      if (op.columns.size() > kMostColumns)
        throw InputError(
            fmt::format("relations: one with {} cut labels; required at most {}", op.columns.size(), kMostColumns));
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

  double moved_between(TraId id, std::uint32_t from, std::uint32_t to) const {
    return moved_bytes(plan_.op(id), distribution(id, from), distribution(id, to), sites_);
  }
  // Returns what moving `bytes` of tuples of this relation costs.
  double move_cost(const LogicalOp& op, double bytes) const {
    if (speeds_ == nullptr || bytes == 0) return bytes;
    const double messages = bytes / op.tuple_bytes, links = std::min(messages, static_cast<double>(sites_));
    return (bytes / speeds_->link_bytes_per_second + speeds_->latency * messages) / links;
  }

  // Returns how many of `tuples` the busiest site has if the columns of `mask` spread them.
  double busiest(const LogicalOp& op, Mask mask, double tuples) const {
    double keys = 1;
    for (std::size_t i = 0; i < op.columns.size(); ++i)
      if (mask >> i & 1) keys *= static_cast<double>(op.columns[i].end - op.columns[i].begin);
    return std::ceil(keys / sites_) * tuples / keys;
  }
  double join_cost(const LogicalOp& op, double tuples_on_a_site) const {
    if (speeds_ == nullptr) return 0;
    double bytes = op.tuple_bytes;
    for (const TraId input : op.inputs) bytes += plan_.op(input).tuple_bytes;
    return tuples_on_a_site * block_time(*speeds_, op.tuple_flops, static_cast<Bytes>(bytes));
  }
  // Folds `partials` tuples for each of `groups` results on a site; memory is what bounds it.
  double fold_cost(const LogicalOp& op, double groups, double partials) const {
    if (speeds_ == nullptr) return 0;
    return groups * block_time(*speeds_, 0, static_cast<Bytes>((partials + 1) * op.tuple_bytes));
  }

  // Adds the input, with its tuples brought to `want` as cheaply as possible.
  void add_input(Way& way, TraId input, std::uint32_t want) const {
    const Reached& reached = reach_[input][want];
    way.cost += reached.cost;
    way.moved += reached.moved;
    way.wants.push_back(want);
  }

  void offer(TraId id, std::uint32_t distribution, Way way, const std::string& text) {
    if (!text.empty()) {
      auto& known = result_.alternatives[id];
      const auto same = std::find_if(known.begin(), known.end(), [&](const Alternative& a) { return a.text == text; });
      if (same == known.end())
        known.push_back({text, way.moved, speeds_ != nullptr ? way.cost : 0});
      else if (std::pair(speeds_ != nullptr ? way.cost : 0, way.moved) < std::pair(same->seconds, same->moved))
        *same = {text, way.moved, speeds_ != nullptr ? way.cost : 0};
    }
    if (way.cost < ways_[id][distribution].cost) ways_[id][distribution] = std::move(way);
  }

  // Returns columns of one relation as bits of another; none if one is missing or counts differently, or if their ranks
  // put them in another order, for then they give other sites.
  std::optional<Mask> translate(Mask mask, const LogicalOp& from, const LogicalOp& to) const {
    Mask result = 0;
    std::uint32_t lowest = 0;
    for (const std::size_t i : by_rank(from.columns)) {
      if (!(mask >> i & 1)) continue;
      const Column& column = from.columns[i];
      std::size_t k = 0;
      while (k < to.columns.size() && to.columns[k].name != column.name) ++k;
      if (k == to.columns.size() || to.columns[k].first != column.first || to.columns[k].count != column.count)
        return std::nullopt;
      if (to.columns[k].rank < lowest) return std::nullopt;
      lowest = to.columns[k].rank;
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
        for (Mask mask = 0; mask < everywhere(id); ++mask) offer(id, mask, {.cost = 0, .wants = {}}, "");
        if (speeds_ != nullptr) offer(id, everywhere(id), {.cost = 0, .wants = {}}, "");
        return;
      case Kind::join:
        return consider_join(id, op);
      case Kind::aggregate:
        return consider_aggregate(id, op);
      default:
        return consider_unary(id, op);
    }
  }

  // Bytes alone would put everything on one site. So where they count, joins and aggregations keep as many sites busy
  // as any of their distributions can.
  double busy_sites(const LogicalOp& op, Mask mask) const {
    double used = 1;
    for (std::size_t i = 0; i < op.columns.size(); ++i)
      if (mask >> i & 1) used *= static_cast<double>(op.columns[i].end - op.columns[i].begin);
    return std::min(used, static_cast<double>(sites_));
  }
  bool spreads(const LogicalOp& op, Mask mask) const {
    return speeds_ != nullptr || busy_sites(op, mask) >= busy_sites(op, (Mask{1} << op.columns.size()) - 1);
  }
  // A join can be spread along the columns of whichever input is not broadcast.
  double most_busy_sites(const LogicalOp& join) const {
    double most = 1;
    for (const TraId input : join.inputs)
      most = std::max(most, busy_sites(join, translate(everywhere(input) - 1, plan_.op(input), join).value_or(0)));
    return most;
  }

  void consider_join(TraId id, const LogicalOp& op) {
    if (speeds_ != nullptr) return consider_placed_join(id, op);
    const auto count = static_cast<std::uint32_t>(op.inputs.size());
    const double most = most_busy_sites(op);
    for (Mask spread = 0; spread < Mask{1} << count; ++spread)  // inputs that are broadcast
      for (Mask mask = 0; mask < everywhere(id); ++mask) {
        if (busy_sites(op, mask) < most) continue;
        const bool all = spread + 1 == Mask{1} << count;
        if (all && op.tuples() > 1) break;  // every site would compute everything
        Way way{.cost = 0, .wants = {}};
        std::vector<std::string> broadcast;
        for (std::uint32_t k = 0; k < count; ++k) {
          const TraId input = op.inputs[k];
          const bool is_spread = spread >> k & 1;
          const std::optional<Mask> want =
              is_spread ? std::optional(everywhere(input)) : translate(mask, op, plan_.op(input));
          if (want)
            add_input(way, input, *want);
          else
            way.cost = kNever;
          if (is_spread) broadcast.push_back(fmt::format("input {}", k));
        }
        if (way.cost == kNever) continue;
        std::string text = broadcast.empty() ? "" : fmt::format("broadcast {}", fmt::join(broadcast, " and "));
        if (!all) text += fmt::format("{}partition on {}", text.empty() ? "co-" : ", ", column_list(op, mask));
        offer(id, all ? everywhere(id) : mask, std::move(way), text);
      }
  }

  // Partitions the join by any columns; tuples of its inputs go to the sites that need them, and to no others.
  void consider_placed_join(TraId id, const LogicalOp& op) {
    for (Mask mask = 0; mask < everywhere(id); ++mask) {
      Way way{.cost = join_cost(op, busiest(op, mask, op.tuples())), .wants = {}};
      std::vector<std::string> sent;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const TraId input = op.inputs[k];
        const Needs needs = needs_of(plan_.op(input), op, mask);
        std::uint32_t best = 0;
        double least = kNever, bytes = 0;
        for (std::uint32_t from = 0; from <= everywhere(input); ++from) {
          const double moved = multicast_bytes(plan_.op(input), needs, distribution(input, from));
          const double cost = reach_[input][from].cost + move_cost(plan_.op(input), moved);
          if (cost < least) least = cost, best = from, bytes = moved;
        }
        add_input(way, input, best);
        way.cost += move_cost(plan_.op(input), bytes);
        way.moved += bytes;
        if (bytes > 0) sent.push_back(fmt::format("input {}", k));
      }
      const std::string partition = fmt::format("partition on {}", column_list(op, mask));
      offer(id, mask, std::move(way),
            sent.empty() ? "co-" + partition : fmt::format("send {}, {}", fmt::join(sent, " and "), partition));
    }
  }

  // Who needs the tuples of a join's input, if `mask` partitions the join.
  struct Needs {
    std::map<Key, std::vector<char>> sites;
    double tuples = 0;  // as many as sites need them
  };
  Needs needs_of(const LogicalOp& input, const LogicalOp& join, Mask mask) const {
    Needs needs{sites_needing(input, join, {false, mask}, sites_)};
    for (const auto& [key, sites] : needs.sites)
      needs.tuples += static_cast<double>(std::count(sites.begin(), sites.end(), 1));
    return needs;
  }
  double multicast_bytes(const LogicalOp& input, const Needs& needs, Distribution from) const {
    if (from.everywhere) return 0;
    double there = 0;
    for (const auto& [key, sites] : needs.sites) there += sites[site_of(input.columns, from.columns, key, sites_)];
    return (needs.tuples - there) * input.tuple_bytes;
  }

  void consider_aggregate(TraId id, const LogicalOp& op) {
    const TraId input = op.inputs[0];
    const LogicalOp& below = plan_.op(input);
    const double groups = op.tuples(), partials = below.tuples() / groups;
    if (speeds_ == nullptr) {
      Way copies{.cost = 0, .wants = {}};
      add_input(copies, input, everywhere(input));
      offer(id, everywhere(id), std::move(copies), "aggregate everywhere");
    }
    for (Mask mask = 0; mask < everywhere(id); ++mask) {
      const std::optional<Mask> want = translate(mask, op, below);
      if (!want || !spreads(op, mask)) continue;
      Way way{.cost = fold_cost(op, busiest(op, mask, groups), partials), .wants = {}};
      add_input(way, input, *want);
      offer(id, mask, std::move(way), "gather each group, aggregate once on " + column_list(op, mask));
    }
    for (Mask from = 0; from < everywhere(input); ++from)
      for (Mask to = 0; to < everywhere(id); ++to) {
        if (!spreads(op, to)) continue;
        const Partials after = partial_results(op, input, from, to);
        const double bytes = after.moves * op.tuple_bytes;
        Way way{.cost = move_cost(op, bytes), .wants = {}, .two_phase = true, .moved = bytes};
        if (after.count < below.tuples()) way.cost += fold_cost(op, after.on_a_site, below.tuples() / after.count);
        way.cost += fold_cost(op, busiest(op, to, groups), after.count / groups);
        add_input(way, input, from);
        offer(id, to, std::move(way), "aggregate locally, shuffle, aggregate on " + column_list(op, to));
      }
  }

  // What is left when every site has folded what it has of a group.
  struct Partials {
    double count = 0, on_a_site = 0;  // in all, and on the busiest site
    double moves = 0;                 // those that are not yet on the site of their group
  };
  Partials partial_results(const LogicalOp& op, TraId input, Mask from, Mask to) const {
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
    Partials result{.count = static_cast<double>(partials.size())};
    std::vector<double> on_site(sites_, 0);
    for (const auto& [site, group] : partials) {
      result.on_a_site = std::max(result.on_a_site, ++on_site[site]);
      result.moves += site != site_of(op.columns, to, group, sites_) ? 1 : 0;
    }
    return result;
  }

  // Filter, transform, rekey, tile and concat keep tuples where they are. A concat needs each row in one
  // place.
  void consider_unary(TraId id, const LogicalOp& op) {
    const TraId input = op.inputs[0];
    for (std::uint32_t from = 0; from <= everywhere(input); ++from) {
      const bool copies = from == everywhere(input);
      const std::optional<std::uint32_t> result = copies ? std::optional(everywhere(id)) : carried(op, from);
      if (!result) continue;
      Way way{.cost = 0, .wants = {}};
      add_input(way, input, from);
      offer(id, *result, std::move(way), "");
    }
  }

  // Returns the distribution after a unary operator on tuples distributed by `from`; none if the new key does not say.
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
    return mask;
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
      Reached cheapest{.from = best};
      for (std::uint32_t from = 0; from < ways.size(); ++from) {
        if (ways[from].cost == kNever || (fixed && from != best)) continue;
        const double bytes = moved_between(id, from, to);
        const double cost = (fixed ? 0 : ways[from].cost) + move_cost(plan_.op(id), bytes);
        if (cost < cheapest.cost) cheapest = {cost, from, (fixed ? 0 : ways[from].moved) + bytes};
      }
      reach_[id].push_back(cheapest);
    }
    auto& known = result_.alternatives[id];
    std::stable_sort(known.begin(), known.end(), [](const Alternative& a, const Alternative& b) {
      return std::pair(a.seconds, a.moved) < std::pair(b.seconds, b.moved);
    });
  }

  Distribution distribution(TraId id, std::uint32_t index) const {
    return index == everywhere(id) ? Distribution{true, 0} : Distribution{false, index};
  }

  std::uint32_t add(PhysicalOp op) {
    result_.moved += op.moved;
    result_.ops.push_back(std::move(op));
    return static_cast<std::uint32_t>(result_.ops.size() - 1);
  }

  // Finds from the readers down which distribution each operator computes, then adds the operators from the sources up.
  void extract() {
    std::vector<std::uint32_t> computed(plan_.size());
    std::vector<std::uint32_t> wanted(plan_.size(), std::numeric_limits<std::uint32_t>::max());
    for (TraId id = plan_.size(); id-- > 0;) {
      computed[id] = readers_[id] == 1 ? reach_[id][wanted[id]].from : best_[id];
      const Way& way = ways_[id][computed[id]];
      for (std::size_t k = 0; k < plan_.op(id).inputs.size(); ++k) wanted[plan_.op(id).inputs[k]] = way.wants[k];
    }
    result_.result_of.resize(plan_.size());
    if (speeds_ != nullptr) result_.seconds = total_seconds(computed);
    for (TraId id = 0; id < plan_.size(); ++id) {
      const LogicalOp& op = plan_.op(id);
      const Way& way = ways_[id][computed[id]];
      std::vector<std::uint32_t> inputs;
      for (std::size_t k = 0; k < op.inputs.size(); ++k)
        inputs.push_back(
            multicast(id, computed[id], k, way.wants[k], moved_to(op.inputs[k], computed[op.inputs[k]], way.wants[k])));
      result_.result_of[id] =
          way.two_phase ? add_two_phase(id, op, inputs[0], way.wants[0], computed[id])
                        : add({PhysicalOp::Kind::local, id, inputs, distribution(id, computed[id]), 0, false});
    }
  }

  // A way's cost includes those below it, except results that several read, which are their own.
  double total_seconds(const std::vector<std::uint32_t>& computed) const {
    double seconds = 0;
    for (TraId id = 0; id < plan_.size(); ++id)
      if (readers_[id] != 1) seconds += ways_[id][computed[id]].cost;
    return seconds;
  }

  std::uint32_t add_two_phase(TraId id, const LogicalOp& op, std::uint32_t input, Mask from, Mask to) {
    const std::uint32_t partial = add({PhysicalOp::Kind::local, id, {input}, {}, 0, true});
    const double moved = partial_results(op, op.inputs[0], from, to).moves * op.tuple_bytes;
    const std::uint32_t shuffled = add({PhysicalOp::Kind::shuffle, id, {partial}, {false, to}, moved, false});
    return add({PhysicalOp::Kind::local, id, {shuffled}, {false, to}, 0, false});
  }

  // Sends what a join by `mask` needs of its input k, which is at `from`, to the sites that need it.
  std::uint32_t multicast(TraId id, Mask mask, std::size_t k, std::uint32_t from, std::uint32_t input) {
    const LogicalOp& op = plan_.op(id);
    if (speeds_ == nullptr || op.kind != Kind::join) return input;
    const LogicalOp& sent = plan_.op(op.inputs[k]);
    const double bytes = multicast_bytes(sent, needs_of(sent, op, mask), distribution(op.inputs[k], from));
    if (bytes == 0) return input;
    return add({PhysicalOp::Kind::multicast, op.inputs[k], {input}, {false, mask}, bytes, false, id});
  }

  std::uint32_t moved_to(TraId id, std::uint32_t from, std::uint32_t to) {
    if (from == to) return result_.result_of[id];
    const auto known = movements_.find({id, to});
    if (known != movements_.end()) return known->second;
    const auto kind = to == everywhere(id) ? PhysicalOp::Kind::broadcast : PhysicalOp::Kind::shuffle;
    return movements_[{id, to}] =
               add({kind, id, {result_.result_of[id]}, distribution(id, to), moved_between(id, from, to), false});
  }

  const LogicalPlan& plan_;
  unsigned sites_;
  const Speeds* speeds_;
  std::vector<int> readers_;
  std::vector<std::vector<Way>> ways_;       // by operator and distribution
  std::vector<std::vector<Reached>> reach_;  // by operator and distribution
  std::vector<std::uint32_t> best_;
  std::map<std::pair<TraId, std::uint32_t>, std::uint32_t> movements_;  // made once however many want them
  PhysicalPlan result_;
};

}  // namespace

unsigned site_of(const std::vector<Column>& columns, std::uint32_t chosen, const Key& key, unsigned sites) {
  std::uint64_t position = 0;
  for (const std::size_t i : by_rank(columns)) {
    if (!(chosen >> i & 1)) continue;
    position =
        position * static_cast<std::uint64_t>(columns[i].count) + static_cast<std::uint64_t>(key[i] - columns[i].first);
  }
  return static_cast<unsigned>(position % sites);
}

std::map<Key, std::vector<char>> sites_needing(const LogicalOp& input, const LogicalOp& join, Distribution of_join,
                                               unsigned sites) {
  std::vector<std::size_t> positions;
  for (const Column& column : input.columns) {
    std::size_t i = 0;
    while (join.columns[i].name != column.name) ++i;
    positions.push_back(i);
  }
  std::map<Key, std::vector<char>> result;
  for (const Key& key : keys_of(join)) {
    Key own;
    for (const std::size_t i : positions) own.push_back(key[i]);
    std::vector<char>& needing = result.try_emplace(std::move(own), sites, 0).first->second;
    needing[site_of(join.columns, of_join.columns, key, sites)] = 1;
  }
  return result;
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
  return Optimiser(plan, sites, nullptr).run();
}

PhysicalPlan optimise(const LogicalPlan& plan, unsigned sites, const Speeds& speeds) {
  DOPPLER_CHECK(sites >= 1, "found no sites");
  return Optimiser(plan, sites, &speeds).run();
}

void simplify(const LogicalPlan& logical, PhysicalPlan& plan, unsigned sites) {
  std::vector<std::uint32_t> moved_to;  // by old operator
  std::vector<PhysicalOp> kept;
  plan.moved = 0;
  const auto moves = [](const PhysicalOp& op) {
    return op.kind == PhysicalOp::Kind::broadcast || op.kind == PhysicalOp::Kind::shuffle;
  };
  for (PhysicalOp op : plan.ops) {
    for (std::uint32_t& input : op.inputs) input = moved_to[input];
    if (moves(op)) {
      const PhysicalOp& before = kept[op.inputs[0]];
      if (moves(before) && !kept[before.inputs[0]].partial) op.inputs = before.inputs;
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
  // Movements that nobody reads any more go.
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
