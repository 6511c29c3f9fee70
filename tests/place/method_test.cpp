#include "doppler/method.h"

#include <set>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(TheMethodTable, HasUniqueNamesAndFindsThem) {
  std::set<std::string_view> names;
  for (const Method& method : methods()) {
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
    EXPECT_EQ(&method_by_name(method.name), &method);
    EXPECT_FALSE(method.summary.empty());
  }
}

TEST(TheMethodTable, ListsItsNamesWhenAskedForAnother) {
  try {
    method_by_name("heff");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("found 'heff'; required one of"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("heft"), std::string::npos);
  }
}

TEST(AResult, CarriesValueBoundAndGap) {
  // Two ops of 3 on two devices: 3. Against a bound of 2 the gap is 50 %.
  const Problem world(test::graph_of({3, 3}, {}), test::machine_of({"a", "a"}));
  LowerBound bound;
  bound.value = 2;
  ExactObjective objective(world);
  const Result result = place(objective, method_by_name("heft"), {}, bound);
  EXPECT_EQ(result.method, "heft");
  EXPECT_EQ(result.winner, "heft");
  EXPECT_EQ(result.makespan, 3);
  EXPECT_EQ(result.gap, 0.5);
  EXPECT_TRUE(result.feasible);
  EXPECT_FALSE(result.optimal);
  bound.value = 3;
  EXPECT_TRUE(place(objective, method_by_name("heft"), {}, bound).optimal);
}

}  // namespace
}  // namespace doppler
