#include "doppler/learn/placeto/placeto_network.h"

namespace doppler {
namespace {

constexpr double kFirstKeep = 4;  // An untrained policy leaves about 19 of 20 ops where they are.

}  // namespace

template <typename Real>
PlacetoNetwork<Real>::PlacetoNetwork(const PlacetoShape& shape, Rng rng) : shape_(shape), parameters_(rng) {
  const std::size_t width = shape.width;
  input_[0] = std::make_unique<Linear<Real>>(parameters_, kNodeFeatureCount, width);
  input_[1] = std::make_unique<Linear<Real>>(parameters_, width, width);
  visited_ = parameters_.constants(1, width, 0);
  for (const Direction direction : kDirections) {
    say_[index(direction)] = std::make_unique<Linear<Real>>(parameters_, width, width);
    hear_[index(direction)] = parameters_.weights(2 * width, width);
    part_[index(direction)] = parameters_.weights(width, kRelations * width);
  }
  device_ = std::make_unique<Linear<Real>>(parameters_, kPlacetoFeatureCount, width);
  output_ = parameters_.weights(width, 1);
  output_ = {output_.begin, 1, width};
  keep_ = parameters_.constants(1, 1, kFirstKeep);
}

template <typename Real>
auto PlacetoNetwork<Real>::nodes(Tape<Real>& tape, const Real* features, std::size_t count) -> Matrix {
  const Matrix hidden = tape.relu((*input_[0])(tape, tape.constant(count, kNodeFeatureCount, features)));
  const Matrix x = (*input_[1])(tape, hidden);
  return tape.relu(tape.above(x, tape.sum(x, parameters_.on(tape, visited_))));
}

template <typename Real>
auto PlacetoNetwork<Real>::say(Tape<Real>& tape, Direction direction, Matrix x) -> Matrix {
  return tape.relu((*say_[index(direction)])(tape, x));
}

template <typename Real>
auto PlacetoNetwork<Real>::hear(Tape<Real>& tape, Direction direction, Matrix own, Matrix said, const Edges& edges)
    -> Matrix {
  const std::size_t rows = tape.row_count(own);
  const Matrix all = tape.messages(said, edges.from, edges.to, rows, edges.share);
  const Matrix near = tape.messages(said, edges.from, edges.to, rows, edges.near);
  const Matrix heard = tape.product(tape.beside(all, near), parameters_.on(tape, hear_[index(direction)]));
  return tape.sum(own, tape.relu(heard));
}

template <typename Real>
auto PlacetoNetwork<Real>::parts(Tape<Real>& tape, Direction direction, Matrix x) -> Matrix {
  const Matrix all = tape.product(x, parameters_.on(tape, part_[index(direction)]));
  return tape.reshaped(all, tape.row_count(x) * kRelations, shape_.width);
}

template <typename Real>
void PlacetoNetwork<Real>::find_near(const PlacetoInput::Round& round, std::size_t moment,
                                     std::span<const DeviceId> device, std::span<Real> near) {
  for (std::uint32_t i = 0; i < near.size(); ++i) {
    const std::uint32_t edge = round.edge_begin[moment] + i;
    const bool together = device[round.from_node[edge]] == device[round.node[round.to[edge]]];
    near[i] = together ? static_cast<Real>(round.share[edge]) : Real{0};
  }
}

template <typename Real>
auto PlacetoNetwork<Real>::embed(Tape<Real>& tape, const PlacetoInput& input, std::span<const DeviceId> decisions,
                                 Kept& kept) -> std::array<Matrix, kDirections.size()> {
  kept.features.assign(input.features().begin(), input.features().end());
  for (const Direction direction : kDirections) {
    const auto rounds = input.rounds(direction);
    auto &share = kept.share[index(direction)], &near = kept.near[index(direction)];
    share.resize(rounds.size());
    near.resize(rounds.size());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      share[i].assign(rounds[i].share.begin(), rounds[i].share.end());
      near[i].resize(share[i].size());
    }
  }
  PlacetoStand& stand = kept.stand;
  stand.begin(input);
  for (std::uint32_t moment = 0; moment < input.moments(); ++moment) {
    if (moment > 0) stand.take(moment - 1, decisions[moment - 1]);
    for (const Direction direction : kDirections)
      for (std::size_t i = 0; i < input.rounds(direction).size(); ++i) {
        const PlacetoInput::Round& round = input.rounds(direction)[i];
        const std::size_t begin = round.edge_begin[moment];
        find_near(round, moment, stand.device(),
                  std::span(kept.near[index(direction)][i]).subspan(begin, round.edge_begin[moment + 1] - begin));
      }
  }
  const Matrix nodes_before = nodes(tape, kept.features.data(), input.node_count());
  std::array<Matrix, kDirections.size()> result;
  for (const Direction direction : kDirections) {
    Matrix x = nodes_before;
    for (std::size_t i = 0; i < input.rounds(direction).size(); ++i) {
      const PlacetoInput::Round& round = input.rounds(direction)[i];
      x = hear(tape, direction, tape.rows(nodes_before, round.own), say(tape, direction, x),
               {round.from, round.to, kept.share[index(direction)][i], kept.near[index(direction)][i]});
    }
    result[index(direction)] = shape_.per_step ? x : parts(tape, direction, x);
  }
  return result;
}

template <typename Real>
void PlacetoNetwork<Real>::Question::clear() {
  rows = 0;
  for (auto& list : from) list.clear();
  to.clear();
  weight.clear();
  features.clear();
}

template <typename Real>
void PlacetoNetwork<Real>::Question::add(const PlacetoInput& input, const PlacetoStand& stand, std::uint32_t step,
                                         std::span<const float> device_features) {
  const std::uint32_t nodes = input.node_count();
  const DeviceId devices = input.device_count();
  const Real scale = static_cast<Real>(4 * devices) / static_cast<Real>(nodes);
  of_versions = input.per_step();
  const auto hear = [&](std::uint32_t node, Relation relation, DeviceId device, Real factor) {
    const auto part = static_cast<std::size_t>(relation);
    for (std::size_t i = 0; i < from.size(); ++i)
      from[i].push_back(
          static_cast<std::uint32_t>(of_versions ? stand.row(i)[node] : stand.row(i)[node] * kRelations + part));
    to.push_back(static_cast<std::uint32_t>(of_versions ? (rows + device) * kRelations + part : rows + device));
    weight.push_back(factor);
  };
  for (std::uint32_t other = 0; other < nodes; ++other)
    if (other != step) hear(other, input.relation(step, other), stand.device()[other], scale);
  for (DeviceId device = 0; device < devices; ++device) hear(step, Relation::self, device, 1);
  features.insert(features.end(), device_features.begin(), device_features.end());
  rows += devices;
}

template <typename Real>
auto PlacetoNetwork<Real>::logits(Tape<Real>& tape, std::span<const Matrix> nodes, const Question& question) -> Matrix {
  const Matrix features = tape.constant(question.rows, kPlacetoFeatureCount, question.features.data());
  Matrix sum = (*device_)(tape, features);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t rows = question.rows * (question.of_versions ? kRelations : 1);
    Matrix heard = tape.messages(nodes[i], question.from[i], question.to, rows, question.weight);
    if (!question.of_versions) {
      sum = tape.sum(sum, heard);
      continue;
    }
    heard = tape.reshaped(heard, question.rows, kRelations * shape_.width);
    const Matrix maps = parameters_.on(tape, part_[i]);
    for (std::size_t relation = 0; relation < kRelations; ++relation) {
      const std::size_t first = relation * shape_.width;
      sum = tape.sum(sum,
                     tape.product(tape.columns(heard, first, shape_.width), tape.columns(maps, first, shape_.width)));
    }
  }
  const Matrix opinion = tape.row_dots(tape.relu(sum), parameters_.on(tape, output_));
  return tape.sum(opinion, tape.product(tape.columns(features, kCurrentFeature, 1), parameters_.on(tape, keep_)));
}

template class PlacetoNetwork<float>;
template class PlacetoNetwork<double>;

}  // namespace doppler
