#include "doppler/learn/placeto/placeto_input.h"

#include <algorithm>
#include <numeric>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// The nodes at the other ends of the edges, each once.
std::vector<std::vector<std::uint32_t>> neighbours(const PlacetoInput& input, bool producers) {
  std::vector<std::vector<std::uint32_t>> result(input.node_count());
  for (std::uint32_t node = 0; node < input.node_count(); ++node) {
    const OpId op = input.op(node);
    for (const PolicyInput::Edge& edge : producers ? input.ops().producers(op) : input.ops().consumers(op))
      result[node].push_back(input.node_of_op(edge.op));
    std::sort(result[node].begin(), result[node].end());
    result[node].erase(std::unique(result[node].begin(), result[node].end()), result[node].end());
  }
  return result;
}

// A set of nodes that grows along edges.
class Reach {
 public:
  explicit Reach(std::size_t nodes) : member_(nodes) {}
  void clear() {
    for (const std::uint32_t node : nodes_) member_[node] = 0;
    nodes_.clear();
    grown_ = 0;
  }
  void add(std::uint32_t node) {
    if (member_[node]) return;
    member_[node] = 1;
    nodes_.push_back(node);
  }
  // Adds the neighbours of all members.
  void grow(const std::vector<std::vector<std::uint32_t>>& neighbours) {
    for (const std::size_t end = nodes_.size(); grown_ < end; ++grown_)
      for (const std::uint32_t node : neighbours[nodes_[grown_]]) add(node);
  }
  std::span<const std::uint32_t> nodes() const { return nodes_; }

 private:
  std::vector<char> member_;
  std::vector<std::uint32_t> nodes_;
  std::size_t grown_ = 0;  // The neighbours of the members before this one are members.
};

}  // namespace

PlacetoInput::PlacetoInput(const std::string& where, const Problem& problem, const Messages& messages)
    : ops_(problem), node_of_op_(problem.op_count()) {
  for (std::uint32_t node = 0; node < node_count(); ++node) {
    node_of_op_[op(node)] = node;
    const auto row = ops_.node_features().subspan(op(node) * kNodeFeatureCount, kNodeFeatureCount);
    features_.insert(features_.end(), row.begin(), row.end());
  }
  find_groups();
  lay_out_messages(where, messages);
  find_ancestors();
  find_start();
}

void PlacetoInput::find_ancestors() {
  words_ = (node_count() + 63) / 64;
  ancestors_.assign(node_count() * words_, 0);
  for (std::uint32_t node = 0; node < node_count(); ++node) {
    std::uint64_t* const row = ancestors_.data() + node * words_;
    for (const PolicyInput::Edge& edge : ops_.producers(op(node))) {
      const std::uint32_t producer = node_of_op_[edge.op];
      for (std::size_t i = 0; i < words_; ++i) row[i] |= ancestors_[producer * words_ + i];
      row[producer / 64] |= std::uint64_t{1} << (producer % 64);
    }
  }
}

void PlacetoInput::find_groups() {
  moved_begin_.push_back(0);
  for (std::uint32_t node = 0; node < node_count(); ++node) {
    moved_.push_back(node);
    bool first = true;
    for (const OpId member : ops_.problem().unit(op(node))) first = first && node_of_op_[member] >= node;
    for (const OpId member : ops_.problem().unit(op(node)))
      if (first && node_of_op_[member] != node) moved_.push_back(node_of_op_[member]);
    moved_begin_.push_back(static_cast<std::uint32_t>(moved_.size()));
  }
}

void PlacetoInput::lay_out_messages(const std::string& where, const Messages& messages) {
  per_step_ = messages.per_step;
  moments_ = per_step_ ? node_count() : 1;
  for (const Direction direction : kDirections) lay_out(direction, messages.rounds, messages.most_rows, where);
}

void PlacetoInput::lay_out(Direction direction, std::size_t rounds, std::size_t most_rows, const std::string& where) {
  const bool forward = direction == Direction::forward;
  const auto senders = neighbours(*this, forward), receivers = neighbours(*this, !forward);
  std::vector<Round>& result = rounds_[static_cast<std::size_t>(direction)];
  result.resize(rounds);
  // By round, from before the first: the valid row of every node.
  std::vector<std::vector<std::uint32_t>> valid(rounds + 1, std::vector<std::uint32_t>(node_count()));
  for (std::uint32_t node = 0; node < node_count(); ++node) valid[0][node] = node;
  Reach reach(node_count());
  std::size_t rows = 0;
  for (std::uint32_t moment = 0; moment < moments_; ++moment) {
    reach.clear();
    if (moment == 0) {
      for (std::uint32_t node = 0; node < node_count(); ++node) reach.add(node);
    } else {
      valid[0][moment - 1] = node_count() + moment - 1;
      for (const std::uint32_t node : moved_with(moment - 1)) reach.add(node);
    }
    for (std::size_t i = 0; i < rounds; ++i) {
      Round& round = result[i];
      round.row_begin.push_back(static_cast<std::uint32_t>(round.node.size()));
      round.edge_begin.push_back(static_cast<std::uint32_t>(round.from.size()));
      reach.grow(receivers);
      for (const std::uint32_t node : reach.nodes()) {
        const auto row = static_cast<std::uint32_t>(round.node.size());
        round.node.push_back(node);
        round.own.push_back(valid[0][node]);
        for (const std::uint32_t sender : senders[node]) {
          round.from.push_back(valid[i][sender]);
          round.from_node.push_back(sender);
          round.to.push_back(row);
          round.share.push_back(1 / static_cast<float>(senders[node].size()));
        }
        valid[i + 1][node] = row;
      }
      rows += reach.nodes().size();
      if (rows * kDirections.size() > most_rows)
        throw InputError(
            fmt::format("{}: {} ops that hear of one another more than {} times in an episode; required at most that "
                        "for messages at every step: fewer rounds, or messages once per episode",
                        where, node_count(), most_rows));
    }
  }
  for (Round& round : result) {
    round.row_begin.push_back(static_cast<std::uint32_t>(round.node.size()));
    round.edge_begin.push_back(static_cast<std::uint32_t>(round.from.size()));
  }
}

// HEFT without gaps: ops by descending b-level, each where it finishes earliest of where it may go.
void PlacetoInput::find_start() {
  std::vector<std::uint32_t> order(node_count());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t node) { return ops_.b_level_moved(op(node)); });
  EpisodeState state(DeviceFeatureSet::improved);
  state.bind(ops_);
  start_.resize(node_count());
  for (const std::uint32_t node : order) {
    state.observe(op(node));
    std::optional<DeviceId> best;
    for (DeviceId device = 0; device < device_count(); ++device)
      if (state.may_go(device) && (!best || state.finish(device) < state.finish(*best))) best = device;
    start_[node] = *best;
    state.place(op(node), *best, [](OpId) {});
  }
}

void PlacetoStand::begin(const PlacetoInput& input) {
  input_ = &input;
  device_.assign(input.start().begin(), input.start().end());
  for (auto& row : row_) row.resize(input.node_count());
  update_rows(0);
}

void PlacetoStand::take(std::uint32_t step, DeviceId device) {
  for (const std::uint32_t node : input_->moved_with(step)) device_[node] = device;
  if (step + 1 < input_->moments()) update_rows(step + 1);
}

void PlacetoStand::update_rows(std::size_t moment) {
  for (const Direction direction : kDirections) {
    const PlacetoInput::Round& last = input_->rounds(direction).back();
    auto& row = row_[static_cast<std::size_t>(direction)];
    for (std::uint32_t i = last.row_begin[moment]; i < last.row_begin[moment + 1]; ++i) row[last.node[i]] = i;
  }
}

}  // namespace doppler
