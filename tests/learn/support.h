#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "doppler/graph/generate.h"
#include "doppler/learn/doppler/gnn.h"
#include "doppler/learn/doppler/rollout.h"
#include "tests/support/problems.h"
#include "tests/support/sanitized.h"

namespace doppler::test {

inline constexpr double kStep = 1e-6;  // The step of a central difference.
inline double difference(const std::function<double()>& loss, double& parameter) {
  const double kept = parameter;
  parameter = kept + kStep;
  const double above = loss();
  parameter = kept - kStep;
  const double below = loss();
  parameter = kept;
  return (above - below) / (2 * kStep);
}

// Everything at once, small: ten ops in four layers with one op that takes no time, two tensors between ops 0 and 3,
// two device types of which one cannot run op 2, a colocation group, a pin, unequal links.
inline std::unique_ptr<Problem> mixed_world(const std::vector<Pin>& pins = {{5, 1}}, bool grouped = true) {
  GraphBuilder builder("mixed");
  const Seconds times[] = {3, 2, 4, 1, 0, 5, 2, 2, 6, 1};
  for (OpId op = 0; op < std::size(times); ++op) {
    OpSpec spec;
    spec.explicit_times = {{"fast", times[op]}, {"slow", op == 2 ? Costs::kNever : 1.5 * times[op]}};
    if (grouped && (op == 6 || op == 8)) spec.group = "pair";
    builder.add_op(std::move(spec));
  }
  for (const Edge& edge : {Edge{0, 3, 2},
                           {0, 3, 1},
                           {0, 4, 3},
                           {1, 4, 1},
                           {1, 5, 2},
                           {2, 5, 4},
                           {3, 6, 1},
                           {4, 6, 2},
                           {4, 7, 2},
                           {5, 7, 3},
                           {6, 8, 1},
                           {7, 8, 5},
                           {7, 9, 2}})
    builder.add_consumer(builder.add_tensor(edge.producer, 0, edge.transfer), edge.consumer);
  std::vector<Device> devices(3);
  for (DeviceId i = 0; i < 3; ++i) {
    devices[i].name = "d" + std::to_string(i);
    devices[i].type = i == 2 ? "slow" : "fast";
    devices[i].slots = i == 1 ? 2 : 1;
  }
  std::vector<Link> links(9);
  for (std::size_t i = 0; i < links.size(); ++i) links[i].cost_factor = i == 1 || i == 3 ? 0.5 : 1.0;
  return std::make_unique<Problem>(std::move(builder).build(), Machine("mixed", devices, links), Rules{}, pins);
}

// Any numbers, as if a network had computed them.
template <typename Real>
Embedding<Real> random_embedding(std::size_t ops, std::size_t width, std::uint64_t seed) {
  Rng rng(seed);
  Embedding<Real> result;
  result.resize(ops, width);
  for (auto* part : {&result.current, &result.placed, &result.producer, &result.score})
    for (Real& value : *part) value = static_cast<Real>(rng.uniform(-1, 1));
  return result;
}
template <typename Real>
std::vector<Real> random_head(const HeadShape& shape, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Real> result(shape.size());
  for (Real& value : result) value = static_cast<Real>(rng.uniform(-1, 1) / 3);
  return result;
}

// The loss of an episode that takes the given decisions, straight from the formulas of network.h and rollout.h: every
// step from the beginning, nothing kept from the step before but the state. With a teacher the targets are its own.
struct SlowLoss {
  const PolicyInput& input;
  DeviceFeatureSet set;
  HeadShape shape;
  std::vector<OpId> order;
  std::vector<DeviceId> device_of_op;
  std::optional<TeacherRule> teacher = {};

  struct Parts {
    double sel = 0, plc = 0, sel_entropy = 0, plc_entropy = 0;
    double total(const LossWeights& w) const {
      return w.sel * sel + w.plc * plc - w.entropy * (sel_entropy + plc_entropy);
    }
  };

  Parts operator()(const Embedding<double>& embedding, const double* head) const {
    EpisodeState state(set);
    state.bind(input);
    Parts parts;
    for (std::size_t step = 0; step < order.size(); ++step) {
      const OpId op = order[step];
      add_sel(state, embedding, op, parts);
      state.observe(op);
      if (state.may_go(device_of_op[op])) add_plc(state, embedding, head, op, parts);
      state.place(op, device_of_op[op], [](OpId) {});
    }
    return parts;
  }

 private:
  bool ready(const EpisodeState& state, OpId op) const {
    const auto producers = input.producers(op);
    return state.device_of_op()[op] == EpisodeState::kUnplaced &&
           std::none_of(producers.begin(), producers.end(), [&](const PolicyInput::Edge& edge) {
             return state.device_of_op()[edge.op] == EpisodeState::kUnplaced;
           });
  }

  void add_sel(const EpisodeState& state, const Embedding<double>& embedding, OpId chosen, Parts& parts) const {
    double z = 0, mean = 0, target = 0, best = -1;
    for (OpId op = 0; op < input.op_count(); ++op)
      if (ready(state, op)) best = std::max(best, input.b_level_moved(op));
    for (OpId op = 0; op < input.op_count(); ++op) {
      if (!ready(state, op)) continue;
      z += std::exp(embedding.score[op]);
      mean += std::exp(embedding.score[op]) * embedding.score[op];
      if (teacher ? input.b_level_moved(op) == best : op == chosen) target += std::exp(embedding.score[op]);
    }
    parts.sel -= std::log(target / z);
    parts.sel_entropy += std::log(z) - mean / z;
  }

  void add_plc(const EpisodeState& state, const Embedding<double>& embedding, const double* head, OpId op,
               Parts& parts) const {
    std::vector<double> logits;
    std::vector<DeviceId> devices;
    Seconds best = Costs::kNever;
    const auto value = [&](DeviceId device) {
      return teacher == TeacherRule::heft ? state.finish(device) : state.start(device);
    };
    for (DeviceId device = 0; device < input.device_count(); ++device) {
      if (!state.may_go(device)) continue;
      devices.push_back(device);
      logits.push_back(logit(state, embedding, head, op, device));
      best = std::min(best, value(device));
    }
    double z = 0, mean = 0, target = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      z += std::exp(logits[i]);
      mean += std::exp(logits[i]) * logits[i];
      if (teacher ? value(devices[i]) == best : devices[i] == device_of_op[op]) target += std::exp(logits[i]);
    }
    parts.plc -= std::log(target / z);
    parts.plc_entropy += std::log(z) - mean / z;
  }

  static double leaky(double x) { return x > 0 ? x : 0.1 * x; }

  double logit(const EpisodeState& state, const Embedding<double>& embedding, const double* head, OpId op,
               DeviceId device) const {
    const std::size_t width = shape.width;
    std::vector<double> sum(embedding.current.begin() + static_cast<std::ptrdiff_t>(op * width),
                            embedding.current.begin() + static_cast<std::ptrdiff_t>((op + 1) * width));
    double inputs_here = 0;
    for (const auto& edge : input.producers(op)) inputs_here += state.device_of_op()[edge.op] == device ? 1 : 0;
    for (std::size_t k = 0; k < width; ++k) {
      for (OpId other = 0; other < input.op_count(); ++other)
        if (state.device_of_op()[other] == device)
          sum[k] += 4.0 * input.device_count() / input.op_count() * embedding.placed[other * width + k];
      for (const auto& edge : input.producers(op))
        if (state.device_of_op()[edge.op] == device) sum[k] += embedding.producer[edge.op * width + k] / inputs_here;
    }
    const float* x = state.features(device);
    const std::size_t first = shape.hidden > 0 ? shape.hidden : width;
    std::vector<double> term(first, 0.0);
    for (std::size_t i = 0; i < shape.features; ++i)
      for (std::size_t k = 0; k < first; ++k) term[k] += static_cast<double>(x[i]) * head[i * first + k];
    for (std::size_t k = 0; k < width; ++k) {
      if (shape.hidden == 0) sum[k] += term[k];
      for (std::size_t i = 0; i < shape.hidden; ++i)
        sum[k] += leaky(term[i]) * head[shape.second_offset() + i * width + k];
    }
    double result = 0;
    for (std::size_t k = 0; k < width; ++k) result += head[shape.output_offset() + k] * leaky(sum[k]);
    return result;
  }
};

}  // namespace doppler::test
