#include "doppler/program/cut/decompose.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/program/cut/plan_cost.h"

namespace doppler::program {
namespace {

constexpr std::size_t kMostBoxes = 256;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// All boxes of at most `most` pieces per label whose number of blocks divides `parts`.
std::vector<Box> all_boxes(const Shape& most, Index parts) {
  std::vector<Index> divisors;
  for (Index d = 1; d <= parts; ++d)
    if (parts % d == 0) divisors.push_back(d);
  std::vector<Box> boxes = {{}};
  for (const Index size : most) {
    std::vector<Box> longer;
    for (const Box& box : boxes)
      for (const Index d : divisors) {
        if (d > size || parts % (product(box) * d) != 0) continue;
        longer.push_back(box);
        longer.back().push_back(d);
      }
    boxes = std::move(longer);
  }
  return boxes;
}

using Row = std::vector<float>;  // cost per box of a variable, or per pair of boxes

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t find(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  bool unite(std::uint32_t a, std::uint32_t b) {
    a = find(a), b = find(b);
    parent_[a] = b;
    return a != b;
  }

 private:
  std::vector<std::uint32_t> parent_;
};

// The sum of costs over variables and links as a discrete optimisation problem. Equal layers share tables.
class Problem {
 public:
  Problem(const Program& program, const DecomposeOptions& options)
      : program_(program), options_(options), costs_(program, options), variable_(program.size(), kNone) {
    find_variables();
    fill_boxes();
    add_links();
  }

  // The best boxes found when each resident byte costs `price` seconds, starting from `starts` and from the
  // optimum of a spanning forest.
  std::vector<std::uint32_t> solve(double price, std::vector<std::vector<std::uint32_t>> starts) {
    priced_.clear();
    for (std::uint32_t v = 0; v < exprs_.size(); ++v) {
      priced_.push_back(own_[v]);
      for (std::size_t c = 0; c < priced_[v].size(); ++c)
        priced_[v][c] += static_cast<float>(price * (*resident_[v])[c]);
    }
    starts.push_back(solve_spanning_forest());
    double least = std::numeric_limits<double>::infinity();
    std::vector<std::uint32_t> best;
    for (std::vector<std::uint32_t>& choice : starts) {
      descend(choice);
      if (const double cost = total(choice); cost < least) least = cost, best = std::move(choice);
    }
    return best;
  }

  // The boxes of a plan, where it has one that is considered.
  std::vector<std::uint32_t> choice_of(const Plan& plan) const {
    std::vector<std::uint32_t> choice;
    for (std::uint32_t v = 0; v < exprs_.size(); ++v) {
      const auto found = std::find(boxes_[v]->begin(), boxes_[v]->end(), plan[exprs_[v]]);
      choice.push_back(found == boxes_[v]->end() ? 0 : static_cast<std::uint32_t>(found - boxes_[v]->begin()));
    }
    return choice;
  }

  Plan plan(const std::vector<std::uint32_t>& choice) const {
    Plan result = uncut(program_);
    for (std::uint32_t v = 0; v < exprs_.size(); ++v) result[exprs_[v]] = (*boxes_[v])[choice[v]];
    complete(program_, result);
    return result;
  }

  double resident(const std::vector<std::uint32_t>& choice) const {
    double sum = 0;
    for (std::uint32_t v = 0; v < exprs_.size(); ++v) sum += (*resident_[v])[choice[v]];
    return sum;
  }
  double least_resident() const {
    double sum = 0;
    for (const auto& row : resident_) sum += *std::min_element(row->begin(), row->end());
    return sum;
  }

 private:
  struct Link {
    std::uint32_t a, b;          // a < b
    double bytes = 0;            // how heavy
    const Row* table = nullptr;  // boxes of a × boxes of b
  };
  struct Half {
    std::uint32_t link, other;
  };

  // Formations follow what they form; an updated input follows its next value, which keeps both cut alike.
  void find_variables() {
    const std::vector<char> needed = live(program_);
    std::vector<ExprId> owner(program_.size());
    for (ExprId id = 0; id < program_.size(); ++id)
      owner[id] = program_.node(id).as<Formation>() != nullptr ? program_.node(id).inputs[0] : id;
    for (const Program::Update& update : program_.updates()) owner[update.old] = owner[update.next];
    for (ExprId id = 0; id < program_.size(); ++id) {
      if (!needed[id] || owner[id] != id || program_.node(id).as<Input>() != nullptr) continue;
      variable_[id] = static_cast<std::uint32_t>(exprs_.size());
      exprs_.push_back(id);
    }
    for (ExprId id = 0; id < program_.size(); ++id)
      if (needed[id]) variable_[id] = variable_[owner[id]];
  }

  // What makes two expressions equal as far as costs go.
  std::string signature(ExprId id) const {
    const Node& node = program_.node(id);
    std::string text =
        fmt::format("{} {} {}", node.computation.index(), to_string(node.join_shape()), node.shape.size());
    text += fmt::format(" {} {}", size_of(node.dtype), block_flops(node, Rect::whole(node.join_shape())));
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      text += fmt::format(" {} {} {}", to_string(program_.node(node.inputs[k]).shape), costs_.operand_bytes(id, k),
                          costs_.has_edge(id, k));
      if (const Einsum* einsum = node.as<Einsum>())
        for (const std::uint32_t label : einsum->operands[k]) text += fmt::format(",{}", label);
      if (const Stencil* stencil = node.as<Stencil>())
        for (const Stencil::Span& span : stencil->operands[k])
          text += span.axis ? fmt::format(",{}", *span.axis) : ",-";
    }
    if (const Stencil* stencil = node.as<Stencil>())
      text += fmt::format(" {} {} {}", to_string(node.most_pieces()), stencil->view, stencil->read.value_or(0));
    return text;
  }

  struct Kind {
    std::vector<Box> boxes;
    Row own, resident;
  };

  Kind make_kind(ExprId id) const {
    std::vector<std::pair<double, Box>> ranked;
    const Node& node = program_.node(id);
    for (Box& box : all_boxes(node.most_pieces(), options_.parts)) {
      if (!costs_.fits(id, box)) continue;
      // With inputs cut to measure, all that moves is the copies.
      double optimistic = costs_.own(id, box).seconds;
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (costs_.has_edge(id, k)) optimistic += costs_.least_edge(id, k, box).seconds;
      ranked.emplace_back(optimistic, std::move(box));
    }
    if (ranked.empty())
      throw InfeasibleError(
          fmt::format("decompose: no block of '{}' with its operands fits in {}; required more "
                      "memory or more parts than {}",
                      node.name, format_bytes(options_.speeds.memory), options_.parts));
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    if (ranked.size() > kMostBoxes) ranked.resize(kMostBoxes);
    Kind kind;
    for (auto& [seconds, box] : ranked) {
      const PlanCost cost = costs_.own(id, box);
      kind.own.push_back(static_cast<float>(cost.seconds));
      kind.resident.push_back(static_cast<float>(cost.resident));
      kind.boxes.push_back(std::move(box));
    }
    return kind;
  }

  void fill_boxes() {
    std::map<std::string, std::size_t> known;
    for (const ExprId id : exprs_) {
      const auto [found, fresh] = known.try_emplace(signature(id), kinds_.size());
      if (fresh) kinds_.push_back(std::make_unique<Kind>(make_kind(id)));
      const Kind& kind = *kinds_[found->second];
      kind_.push_back(found->second);
      boxes_.push_back(&kind.boxes);
      own_.push_back(kind.own);
      resident_.push_back(&kind.resident);
    }
  }

  // Cost of operand k of `id` for every pair of boxes of the two variables, by (producer box, consumer box).
  Row edge_table(ExprId id, std::size_t k) const {
    const Node& node = program_.node(id);
    const std::size_t rank = program_.node(node.inputs[k]).shape.size();
    const auto &from = *boxes_[variable_[node.inputs[k]]], &to = *boxes_[variable_[id]];
    Row table;
    for (Box produced : from) {
      produced.resize(rank);
      for (const Box& box : to) table.push_back(static_cast<float>(costs_.edge(id, k, produced, box).seconds));
    }
    return table;
  }

  // An edge between two variables, low < high, with the table of its costs.
  struct Edge {
    std::uint32_t low, high;
    bool reversed;  // the producer is `high`
    std::size_t table;
    double bytes;
  };

  // All edges but those of a variable with itself (an update reads the old weight), which belong to the
  // variable.
  std::vector<Edge> collect_edges(std::vector<Row>& tables) {
    std::map<std::string, std::size_t> known;
    std::vector<Edge> edges;
    for (ExprId id = 0; id < program_.size(); ++id) {
      const Node& node = program_.node(id);
      if (variable_[id] == kNone || node.as<Formation>() != nullptr || node.as<Input>() != nullptr) continue;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (!costs_.has_edge(id, k)) continue;
        const std::uint32_t from = variable_[node.inputs[k]], to = variable_[id];
        const std::size_t rank = program_.node(node.inputs[k]).shape.size();
        const auto [found, fresh] =
            known.try_emplace(fmt::format("{} {} {} {}", kind_[from], kind_[to], k, rank), tables.size());
        if (fresh) tables.push_back(edge_table(id, k));
        if (from == to) {
          const std::size_t n = own_[to].size();
          for (std::size_t c = 0; c < n; ++c) own_[to][c] += tables[found->second][c * n + c];
          continue;
        }
        edges.push_back(
            {std::min(from, to), std::max(from, to), from > to, found->second, costs_.operand_bytes(id, k)});
      }
    }
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& x, const Edge& y) { return std::pair(x.low, x.high) < std::pair(y.low, y.high); });
    return edges;
  }

  // Edges between the same two variables add up to one link.
  void add_links() {
    std::vector<Row> tables;
    const std::vector<Edge> edges = collect_edges(tables);
    halves_.resize(exprs_.size());
    std::map<std::string, const Row*> sums;
    for (std::size_t i = 0; i < edges.size();) {
      Link link{edges[i].low, edges[i].high, 0, nullptr};
      std::string key = fmt::format("{} {}", kind_[link.a], kind_[link.b]);
      std::size_t end = i;
      for (; end < edges.size() && edges[end].low == link.a && edges[end].high == link.b; ++end) {
        link.bytes += edges[end].bytes;
        key += fmt::format(" {}{}", edges[end].table, edges[end].reversed ? 'r' : 'f');
      }
      const auto [found, fresh] = sums.try_emplace(key, nullptr);
      if (fresh) found->second = sum_of(link, std::span(edges).subspan(i, end - i), tables);
      link.table = found->second;
      const auto index = static_cast<std::uint32_t>(links_.size());
      halves_[link.a].push_back({index, link.b});
      halves_[link.b].push_back({index, link.a});
      links_.push_back(link);
      i = end;
    }
  }

  const Row* sum_of(const Link& link, std::span<const Edge> edges, const std::vector<Row>& tables) {
    const std::size_t rows = own_[link.a].size(), columns = own_[link.b].size();
    auto sum = std::make_unique<Row>(rows * columns, 0.0f);
    for (const Edge& edge : edges)
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c)
          (*sum)[r * columns + c] += tables[edge.table][edge.reversed ? c * rows + r : r * columns + c];
    link_tables_.push_back(std::move(sum));
    return link_tables_.back().get();
  }

  float link_cost(const Link& link, std::uint32_t box_a, std::uint32_t box_b) const {
    return (*link.table)[box_a * own_[link.b].size() + box_b];
  }

  double total(const std::vector<std::uint32_t>& choice) const {
    double sum = 0;
    for (std::uint32_t v = 0; v < exprs_.size(); ++v) sum += priced_[v][choice[v]];
    for (const Link& link : links_) sum += link_cost(link, choice[link.a], choice[link.b]);
    return sum;
  }

  std::vector<std::uint32_t> solve_spanning_forest() const {
    std::vector<std::uint32_t> order(links_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return links_[x].bytes > links_[y].bytes; });
    UnionFind trees(exprs_.size());
    std::vector<char> in_forest(links_.size(), 0);
    for (const std::uint32_t link : order) in_forest[link] = trees.unite(links_[link].a, links_[link].b) ? 1 : 0;
    std::vector<std::uint32_t> choice(exprs_.size(), 0);
    solve_forest(std::vector<char>(exprs_.size(), 1), in_forest, priced_, choice);
    return choice;
  }

  void descend(std::vector<std::uint32_t>& choice) const {
    double best = total(choice);
    Rng rng(1);
    constexpr int kPatience = 4;  // orders in a row that bring nothing
    for (int idle = 0; idle < kPatience;) {
      improve(choice, rng);
      const double now = total(choice);
      idle = now < best * (1 - 1e-9) ? 0 : idle + 1;
      best = std::min(best, now);
    }
  }

  // Frees as many variables, in a random order, as induce a forest, and solves for them exactly.
  void improve(std::vector<std::uint32_t>& choice, Rng& rng) const {
    std::vector<std::uint32_t> order(exprs_.size());
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = static_cast<std::uint32_t>(order.size()); i > 1; --i)
      std::swap(order[i - 1], order[rng.below(i)]);
    UnionFind trees(exprs_.size());
    std::vector<char> free(exprs_.size(), 0), in_forest(links_.size(), 0);
    std::vector<std::uint32_t> roots;
    for (const std::uint32_t v : order) {
      roots.clear();
      for (const Half& half : halves_[v])
        if (free[half.other]) roots.push_back(trees.find(half.other));
      std::sort(roots.begin(), roots.end());
      if (std::adjacent_find(roots.begin(), roots.end()) != roots.end()) continue;  // would close a cycle
      free[v] = 1;
      for (const Half& half : halves_[v])
        if (free[half.other]) trees.unite(v, half.other), in_forest[half.link] = 1;
    }
    std::vector<Row> cost = priced_;
    for (const Link& link : links_) {
      if (free[link.a] == free[link.b]) continue;
      const std::uint32_t v = free[link.a] ? link.a : link.b;
      for (std::uint32_t c = 0; c < cost[v].size(); ++c)
        cost[v][c] += v == link.a ? link_cost(link, c, choice[link.b]) : link_cost(link, choice[link.a], c);
    }
    solve_forest(free, in_forest, std::move(cost), choice);
  }

  // Dynamic programming from the leaves: each variable hands its parent the least cost of its subtree per
  // parent box.
  void solve_forest(const std::vector<char>& free, const std::vector<char>& in_forest, std::vector<Row> cost,
                    std::vector<std::uint32_t>& choice) const {
    std::vector<std::uint32_t> order;  // parents first
    std::vector<Half> parent(exprs_.size(), {kNone, kNone});
    std::vector<char> seen(exprs_.size(), 0);
    for (std::uint32_t root = 0; root < exprs_.size(); ++root) {
      if (!free[root] || seen[root]) continue;
      seen[root] = 1;
      order.push_back(root);
      for (std::size_t next = order.size() - 1; next < order.size(); ++next)
        for (const Half& half : halves_[order[next]]) {
          if (!in_forest[half.link] || seen[half.other]) continue;
          seen[half.other] = 1;
          parent[half.other] = {half.link, order[next]};
          order.push_back(half.other);
        }
    }
    std::vector<std::vector<std::uint16_t>> answer(exprs_.size());  // best own box per parent box
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::uint32_t v = order[i];
      if (parent[v].other != kNone) answer[v] = send_up(v, parent[v], cost);
    }
    for (const std::uint32_t v : order)
      choice[v] = parent[v].other == kNone
                      ? static_cast<std::uint32_t>(std::min_element(cost[v].begin(), cost[v].end()) - cost[v].begin())
                      : answer[v][choice[parent[v].other]];
  }

  std::vector<std::uint16_t> send_up(std::uint32_t v, const Half& parent, std::vector<Row>& cost) const {
    const Link& link = links_[parent.link];
    Row& above = cost[parent.other];
    const std::size_t own_count = cost[v].size(), columns = own_[link.b].size();
    const std::size_t own_step = v == link.a ? columns : 1, above_step = v == link.a ? 1 : columns;
    std::vector<std::uint16_t> answer(above.size(), 0);
    Row message;
    for (std::size_t p = 0; p < above.size(); ++p) {
      float best = std::numeric_limits<float>::infinity();
      const float* table = link.table->data() + p * above_step;
      for (std::size_t c = 0; c < own_count; ++c) {
        const float value = cost[v][c] + table[c * own_step];
        if (value < best) best = value, answer[p] = static_cast<std::uint16_t>(c);
      }
      message.push_back(best);
    }
    // Relative to the least, or the totals of deep trees would eat the digits of the differences.
    const float least = *std::min_element(message.begin(), message.end());
    for (std::size_t p = 0; p < above.size(); ++p) above[p] += message[p] - least;
    return answer;
  }

  const Program& program_;
  const DecomposeOptions& options_;
  PlanCosts costs_;
  std::vector<std::uint32_t> variable_;  // by expression
  std::vector<ExprId> exprs_;            // by variable
  std::vector<std::unique_ptr<Kind>> kinds_;
  std::vector<std::size_t> kind_;
  std::vector<const std::vector<Box>*> boxes_;
  std::vector<Row> own_, priced_;
  std::vector<const Row*> resident_;
  std::vector<std::unique_ptr<Row>> link_tables_;
  std::vector<Link> links_;
  std::vector<std::vector<Half>> halves_;
};

// Raises the price of resident bytes until they fit, then lowers it as far as they still do.
Plan cheapest_that_fits(const Program& program, const DecomposeOptions& options) {
  Problem problem(program, options);
  std::vector<std::vector<std::uint32_t>> starts;
  for (const Plan& plan : single_cut_plans(program, options.parts)) starts.push_back(problem.choice_of(plan));
  std::vector<std::uint32_t> choice = problem.solve(0, std::move(starts));
  const double devices = static_cast<double>(options.devices > 0 ? options.devices : options.parts);
  const double capacity = static_cast<double>(options.speeds.memory) * devices;
  if (options.speeds.memory == 0 || problem.resident(choice) <= capacity) return problem.plan(choice);
  if (problem.least_resident() > capacity)
    throw InfeasibleError(fmt::format("decompose: the inputs take at least {}; required at most {} on {} devices",
                                      format_bytes(static_cast<Bytes>(problem.least_resident())),
                                      format_bytes(static_cast<Bytes>(capacity)), devices));
  double low = 0, high = 1 / options.speeds.memory_bytes_per_second / devices;
  while (problem.resident(choice = problem.solve(high, {choice})) > capacity) {
    low = high, high *= 4;
    if (high > 1e6) throw InfeasibleError("decompose: found no plan whose inputs fit; required more memory");
  }
  constexpr int kBisections = 5;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    std::vector<std::uint32_t> other = problem.solve(middle, {choice});
    const bool fits = problem.resident(other) <= capacity;
    (fits ? high : low) = middle;
    if (fits) choice = std::move(other);
  }
  return problem.plan(choice);
}

}  // namespace

std::vector<Decomposition> decompose(const Program& program, const DecomposeOptions& options) {
  constexpr Index kMostParts = 4096;
  if (options.parts < 1 || options.parts > kMostParts)
    throw InputError(fmt::format("parts: found {}; required between 1 and {}", options.parts, kMostParts));
  // Different plans come from different beliefs about the links; all are judged by the true ones.
  constexpr double kBeliefs[] = {1, 0.25, 4, 1.0 / 16, 16, 1.0 / 64, 64};
  std::vector<Decomposition> result;
  for (const double belief : kBeliefs) {
    DecomposeOptions believed = options;
    believed.speeds.link_bytes_per_second *= belief;
    believed.speeds.latency /= belief;
    Plan plan = cheapest_that_fits(program, believed);
    const bool known =
        std::any_of(result.begin(), result.end(), [&](const Decomposition& other) { return other.plan == plan; });
    if (!known) result.push_back({plan, estimate(program, plan, options)});
    if (result.size() >= options.plans) break;
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Decomposition& a, const Decomposition& b) { return a.cost.seconds < b.cost.seconds; });
  return result;
}

}  // namespace doppler::program
