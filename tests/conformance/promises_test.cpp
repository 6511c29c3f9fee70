#include <ctime>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/generate.h"
#include "tests/conformance/cases.h"
#include "tests/support/sanitized.h"

// Every method keeps its time on inputs that it cannot finish. bench/promises does the same with the largest inputs.
namespace doppler {
namespace {

constexpr Seconds kTime = 0.3;
// 5 % + 0.3 s. In seconds of the processor: on a busy machine they are less than those on the wall, never more.
constexpr Seconds kLatest = 1.05 * kTime + 0.3;
// The promise is for releases on a machine of today. This build is slower, the machine may be too, and what breaks the
// promise breaks it by far more than this factor: `bench/promises` holds releases to it exactly.
constexpr double kSlack = 2.5;

struct Input {
  std::string name;
  Problem problem;
};

// Equal devices that can run generated graphs.
Machine machine_of(DeviceId count, Bytes memory) {
  Device device = load_machine("v100x4").device(0);
  device.memory = memory;
  std::vector<Device> devices(count, device);
  for (DeviceId id = 0; id < count; ++id) devices[id].name = "d" + std::to_string(id);
  Link link;
  link.bytes_per_second = 1e10;
  return Machine("test", devices, std::vector<Link>(std::size_t{count} * count, link));
}

const std::vector<Input>& large_inputs() {
  static const std::vector<Input> inputs = [] {
    LayeredOptions deep;
    deep.ops = test::fewer_if_sanitized(60'000u);
    RandomOptions wide;
    wide.ops = test::fewer_if_sanitized(10'000u);
    wide.degree = 0.1;
    std::vector<Input> made;
    // No policy refuses this one.
    LayeredOptions medium;
    medium.ops = test::fewer_if_sanitized(2'000u);
    made.push_back({"medium", Problem(generate_layered(medium), load_machine("v100x8").with_jitter(0))});
    made.push_back({"varying", Problem(generate_layered(medium), load_machine("v100x8").with_jitter(0.1))});
    made.push_back({"varying deep", Problem(generate_layered(deep), load_machine("v100x8").with_jitter(0.1))});
    made.push_back({"deep", Problem(generate_layered(deep), load_machine("v100x8").with_jitter(0))});
    made.push_back({"wide", Problem(generate_random(wide), machine_of(500, 0))});
    // Results alone take 8.7 GB: little more is there, what heuristics find does not fit, and repair begins.
    made.push_back({"tight", Problem(generate_layered(deep), machine_of(8, 1'150'000'000))});
    return made;
  }();
  return inputs;
}

class EveryMethodOnALargeInput : public testing::TestWithParam<std::string_view> {
 protected:
  void expect_in_time(const Input& input, const Budget& budget, Seconds latest) {
    SCOPED_TRACE(input.name);
    const Method& method = method_by_name(GetParam());
    const std::unique_ptr<Objective> objective = usual_objective(input.problem);
    MethodOptions options;
    options.policy = test::policy_of(method);
    options.budget = budget;
    const std::clock_t start = std::clock();
    try {
      const Result result = place(*objective, method, options, {});
      EXPECT_TRUE(result.feasible);
      EXPECT_EQ(method_by_name(result.winner).name, result.winner);
    } catch (const InfeasibleError&) {
      EXPECT_EQ(input.name, "tight");
    } catch (const InputError& error) {  // Some policies refuse large graphs, in time and whatever the time.
      EXPECT_EQ(method.family, Method::Family::learned);
      EXPECT_NE(input.name, "medium");
      EXPECT_NE(input.name, "varying");
      EXPECT_NE(std::string_view(error.what()).find("required at most"), std::string_view::npos) << error.what();
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LE(seconds, test::kSanitized ? 100 * latest : kSlack * latest);
  }
};

std::vector<std::string_view> names_of_methods() {
  std::vector<std::string_view> names;
  for (const Method& method : methods()) names.push_back(method.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryMethodOnALargeInput, testing::ValuesIn(names_of_methods()),
                         [](const auto& test) { return test::name_of(test.param); });

TEST_P(EveryMethodOnALargeInput, KeepsItsTime) {
  for (const Input& input : large_inputs()) expect_in_time(input, Budget::for_time(kTime), kLatest);
}

TEST_P(EveryMethodOnALargeInput, AnswersSoonWhenInterrupted) {
  std::stop_source user;
  user.request_stop();
  for (const Input& input : large_inputs()) expect_in_time(input, Budget::unlimited().until(user.get_token()), 0.3);
}

}  // namespace
}  // namespace doppler
