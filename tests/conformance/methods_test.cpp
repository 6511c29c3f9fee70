#include <gtest/gtest.h>

#include "doppler/errors.h"
#include "doppler/objective.h"
#include "tests/conformance/cases.h"

namespace doppler {
namespace {

using test::all_cases;
using test::Case;
using test::policy_of;

// Bounds and simulated times are sums of the same numbers in different orders.
constexpr double kRounding = 1e-9;
// Enough for a search to begin, few enough that all methods on all cases take seconds.
constexpr std::uint64_t kEvaluations = 12;

MethodOptions short_options(const Method& method) {
  MethodOptions options;
  options.policy = policy_of(method);
  options.budget = Budget::for_evaluations(kEvaluations);
  options.seed = 7;
  return options;
}

// Whether a method rightly finds nothing: `single`, where no device may run and can hold everything.
bool has_no_answer(const Method& method, const Problem& problem) {
  if (method.name != "single") return false;
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    bool allowed = true;
    for (OpId op = 0; op < problem.op_count(); ++op) allowed = allowed && problem.allows(op, device);
    const Placement one{std::vector<DeviceId>(problem.op_count(), device), {}, {}};
    if (allowed && ExactObjective(problem).simulate(one).feasible()) return false;
  }
  return true;
}

// Every method of the table; a new one is covered by being there.
class EveryMethod : public testing::TestWithParam<std::string_view> {
 protected:
  const Method& method() const { return method_by_name(GetParam()); }
};

std::vector<std::string_view> method_names() {
  std::vector<std::string_view> names;
  for (const Method& method : methods()) names.push_back(method.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryMethod, testing::ValuesIn(method_names()),
                         [](const auto& test) { return test::name_of(test.param); });

TEST_P(EveryMethod, IsLegalFitsInMemoryAndRespectsTheLowerBound) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    // place() verifies: total, allowed (pins, capabilities), groups together, priority a permutation.
    Result result;
    if (has_no_answer(method(), c.problem)) {
      EXPECT_THROW(test::place(c.problem, method(), short_options(method()), c.bound), InfeasibleError);
      continue;
    }
    ASSERT_NO_THROW(result = test::place(c.problem, method(), short_options(method()), c.bound));
    EXPECT_TRUE(result.feasible);
    EXPECT_GE(result.makespan, c.bound.value * (1 - kRounding));
    EXPECT_GE(result.makespan, result.bound.value * (1 - kRounding)) << "beats what it proved";
  }
}

TEST_P(EveryMethod, SaysWhyAndHonoursPins) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    if (has_no_answer(method(), c.problem)) continue;
    const Placement placement = test::run(method().run, c.problem, short_options(method())).placement;
    ASSERT_EQ(placement.cause_of_op.size(), placement.device_of_op.size());
    for (OpId op = 0; op < c.problem.graph().op_count(); ++op) {
      EXPECT_EQ(placement.cause_of_op[op] == Cause::pinned, c.problem.pinned(op));
      EXPECT_TRUE(c.problem.allows(op, placement.device_of_op[op]));
    }
  }
}

TEST_P(EveryMethod, GivesTheSameForTheSameSeedAtAnyThreadCount) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    if (has_no_answer(method(), c.problem)) continue;
    MethodOptions options = short_options(method());
    const Proposal once = test::run(method().run, c.problem, options),
                   again = test::run(method().run, c.problem, options);
    options.threads = 2;
    const Proposal with_two_threads = test::run(method().run, c.problem, options);
    EXPECT_EQ(once.placement, again.placement);
    EXPECT_EQ(once.placement, with_two_threads.placement);
    EXPECT_EQ(once.evaluations, with_two_threads.evaluations);
  }
}

TEST_P(EveryMethod, ReturnsSomethingLegalWhenInterruptedOrWithoutABudget) {
  std::stop_source user;
  user.request_stop();
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    if (has_no_answer(method(), c.problem)) continue;
    MethodOptions options = short_options(method());
    for (const Budget& budget :
         {Budget::unlimited().until(user.get_token()), Budget::for_time(0), Budget::for_evaluations(0)}) {
      options.budget = budget;
      EXPECT_TRUE(test::place(c.problem, method(), options, c.bound).feasible);
    }
  }
}

}  // namespace
}  // namespace doppler
