#include "doppler/machine/jitter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/costs.h"

namespace doppler {
namespace {

constexpr int kDraws = 20'000;

// Op 0 is a matmul, op 1 an add that reads its result.
Graph two_kinds() {
  GraphBuilder builder("test");
  builder.add_op({.kind = "matmul", .explicit_times = {{"*", 1.0}}});
  builder.add_op({.kind = "add", .explicit_times = {{"*", 1.0}}});
  builder.add_consumer(builder.add_tensor(0, 8, 1.0), 1);
  return std::move(builder).build();
}

struct Moments {
  double mean = 0, deviation = 0;  // of the factors
  double sigma = 0;                // of their logarithms
};

template <typename Factor>
Moments moments_of(Factor factor) {
  double sum = 0, squares = 0, logs = 0, log_squares = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const double value = factor(seed), log = std::log(value);
    sum += value;
    squares += value * value;
    logs += log;
    log_squares += log * log;
  }
  const double n = kDraws;
  return {sum / n, std::sqrt(squares / n - sum * sum / n / n), std::sqrt(log_squares / n - logs * logs / n / n)};
}

TEST(AJitter, OfAPlainNumberIsTheSameForEverything) {
  const Jitter jitter = 0.1;
  EXPECT_TRUE(jitter.plain());
  EXPECT_TRUE(jitter.varies());
  EXPECT_EQ(jitter.of_kind("matmul"), 0.1);
  EXPECT_EQ(jitter.transfers, 0.1);
  EXPECT_FALSE(Jitter().varies());
  EXPECT_FALSE(Jitter(0).varies());
}

TEST(AJitter, VariesIfAnythingDoes) {
  Jitter kinds, transfers, tail;
  kinds.kinds = {{"matmul", 0.1}};
  transfers.transfers = 0.1;
  tail.tail = {.probability = 0.1, .factor = 2};
  for (const Jitter& jitter : {kinds, transfers, tail}) {
    EXPECT_TRUE(jitter.varies());
    EXPECT_FALSE(jitter.plain());
  }
}

TEST(AJitter, CanBeRaisedToALeastSigma) {
  Jitter jitter = 0.05;
  jitter.transfers = 0.3;
  jitter.kinds = {{"matmul", 0.02}, {"add", 0.2}};
  Jitter raised = 0.1;
  raised.transfers = 0.3;
  raised.kinds = {{"matmul", 0.1}, {"add", 0.2}};
  EXPECT_EQ(jitter.at_least(0.1), raised);
}

TEST(AJitterDraw, OfAPlainNumberIsALognormalFactorByIndex) {
  // exp(σz - σ²/2), where z is the first normal number of the generator of (seed, index); transfers have other seeds.
  const Graph graph = two_kinds();
  const JitterDraw draw{0.2, 7};
  EXPECT_EQ(draw.op_factor(graph, 1), std::exp(0.2 * Rng(mix(7, 1)).normal() - 0.2 * 0.2 / 2));
  EXPECT_EQ(draw.transfer_factor(1), std::exp(0.2 * Rng(mix(~std::uint64_t{7}, 1)).normal() - 0.2 * 0.2 / 2));
  EXPECT_EQ(JitterDraw().op_factor(graph, 1), 1);
  EXPECT_EQ(JitterDraw().transfer_factor(1), 1);
}

TEST(AJitterDraw, HasMeanOneWhateverVaries) {
  const Graph graph = two_kinds();
  Jitter jitter = 0.1;
  jitter.kinds = {{"matmul", 0.4}};
  jitter.transfers = 0.3;
  jitter.tail = {.probability = 0.1, .factor = 5};
  // Five standard errors of the mean, sqrt(kDraws) times less than the deviation.
  const auto expect_one = [](const Moments& found) {
    EXPECT_NEAR(found.mean, 1, 5 * found.deviation / std::sqrt(kDraws));
  };
  expect_one(moments_of([&](std::uint64_t seed) { return JitterDraw{jitter, seed}.op_factor(graph, 0); }));
  expect_one(moments_of([&](std::uint64_t seed) { return JitterDraw{jitter, seed}.op_factor(graph, 1); }));
  expect_one(moments_of([&](std::uint64_t seed) { return JitterDraw{jitter, seed}.transfer_factor(0); }));
}

TEST(AJitterDraw, HasTheSigmaOfTheKindAndAnotherForTransfers) {
  const Graph graph = two_kinds();
  Jitter jitter = 0.1;
  jitter.kinds = {{"matmul", 0.4}};
  jitter.transfers = 0.2;
  const auto op = [&](OpId id) {
    return moments_of([&](std::uint64_t seed) { return JitterDraw{jitter, seed}.op_factor(graph, id); }).sigma;
  };
  const auto transfer = moments_of([&](std::uint64_t seed) {
                          return JitterDraw{jitter, seed}.transfer_factor(0);
                        }).sigma;
  constexpr double kSampling = 0.025;  // A deviation of 20 000 draws has an error of 0.5 %; five of them.
  EXPECT_NEAR(op(0), 0.4, kSampling * 0.4);
  EXPECT_NEAR(op(1), 0.1, kSampling * 0.1);
  EXPECT_NEAR(transfer, 0.2, kSampling * 0.2);
}

TEST(AJitterDraw, IsLongAsOftenAsTheTailSays) {
  // Without a body there are two factors only: 1 and 6, over their mean 1 + 0.1 · 5 = 1.5.
  const Graph graph = two_kinds();
  Jitter jitter;
  jitter.tail = {.probability = 0.1, .factor = 6};
  int longer = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const double factor = JitterDraw{jitter, seed}.op_factor(graph, 0);
    if (factor > 1) {
      ++longer;
      EXPECT_DOUBLE_EQ(factor, 4);
    } else {
      EXPECT_DOUBLE_EQ(factor, 1 / 1.5);
    }
    EXPECT_EQ((JitterDraw{jitter, seed}.transfer_factor(0)), 1);
  }
  EXPECT_NEAR(longer, 0.1 * kDraws, 5 * std::sqrt(0.1 * 0.9 * kDraws));
}

TEST(AJitterDraw, IsWhatCostsAreMultipliedBy) {
  Jitter jitter = 0.1;
  jitter.kinds = {{"matmul", 0.4}};
  const Costs costs(two_kinds(), uniform_machine(2));
  const JitterDraw draw{jitter, 3};
  const Costs drawn = costs.drawn(draw);
  EXPECT_EQ(drawn.op_time(0, 1), draw.op_factor(costs.graph(), 0));
  EXPECT_EQ(drawn.op_time(1, 0), draw.op_factor(costs.graph(), 1));
  EXPECT_EQ(drawn.transfer_time(0, 0, 1), draw.transfer_factor(0));
}

TEST(AMachine, WithoutItsEmulationIsTheOneThatIsEmulated) {
  // 5 us of every op and 9 us of every transfer are the emulation's; 10 us of latency are the link's.
  std::vector<Device> devices(2);
  devices[0] = {
      .name = "a", .type = "gpu", .rates = {}, .overhead = 5e-6, .measured = {{"matmul", "f32", 1, 2, 3, 8e-6}}};
  devices[1] = {.name = "b", .type = "gpu", .rates = {}, .overhead = 7e-6};
  const Machine whole("m", devices, std::vector<Link>(4, Link{.latency = 19e-6}), Links::channels, 0.3);
  EXPECT_EQ(whole.without_emulation().jitter(), Jitter(0.3));
  const Machine emulated = whole.with_emulation(Emulation{5e-6, 9e-6, 0.1}).without_emulation();
  constexpr double kRounding = 1e-18;
  EXPECT_EQ(emulated.device(0).overhead, 0);
  EXPECT_NEAR(emulated.device(0).measured[0].seconds, 3e-6, kRounding);
  EXPECT_NEAR(emulated.device(1).overhead, 2e-6, kRounding);
  EXPECT_NEAR(emulated.link(0, 1).latency, 10e-6, kRounding);
  EXPECT_EQ(emulated.jitter(), Jitter(0.1));
  EXPECT_EQ(emulated.link_model(), Links::channels);
  EXPECT_FALSE(emulated.emulation());
}

TEST(AMachine, OfAnotherJitterIsEmulatedWithIt) {
  const Machine machine = uniform_machine(2).with_jitter(0.3).with_emulation(Emulation{0, 0, 0.1});
  EXPECT_EQ(machine.with_jitter(0.2).without_emulation().jitter(), Jitter(0.2));
  EXPECT_THROW(machine.with_jitter(-1), InputError);
}

}  // namespace
}  // namespace doppler
