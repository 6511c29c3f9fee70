#include "doppler/learn/train/policy_file.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/trained_policy.h"
#include "tests/learn/published.h"

namespace doppler {
namespace {

PolicyFile small_policy() {
  PolicyFile file = file_of(*make_policy("gnn width 32 layers 1 messages episode", Rng(1)));
  file.made_by = "a test";
  file.adam_mean.assign(file.parameters.size(), 0.5F);
  file.adam_square.assign(file.parameters.size(), 0.25F);
  file.training = R"({"updates":3})";
  return file;
}

std::string error_of(const std::string& bytes) {
  try {
    parse_policy("run/checkpoint", bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(APolicyFile, ComesBackAsItWas) {
  const PolicyFile file = small_policy();
  const PolicyFile back = parse_policy("file", policy_to_bytes(file));
  EXPECT_EQ(back.architecture, file.architecture);
  EXPECT_EQ(back.parameters, file.parameters);
  EXPECT_EQ(back.adam_mean, file.adam_mean);
  EXPECT_EQ(back.adam_square, file.adam_square);
  EXPECT_EQ(back.training, file.training);
  EXPECT_EQ(back.made_by, file.made_by);
}

TEST(APolicyFile, IsRefusedWhereverItIsCutShort) {
  const std::string bytes = policy_to_bytes(small_policy());
  for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 50)
    EXPECT_NE(error_of(bytes.substr(0, length)), "") << length;
}

TEST(APolicyFile, IsRefusedIfAnyByteOfItsNumbersIsWrong) {
  const std::string bytes = policy_to_bytes(small_policy());
  for (std::size_t at = bytes.find("\n{") + 2; at < bytes.size(); at += 997) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    EXPECT_NE(error_of(damaged), "") << at;
  }
}

TEST(APolicyFile, NamesWhatIsWrong) {
  const std::string bytes = policy_to_bytes(small_policy());
  EXPECT_NE(error_of("PK\3\4 a torch archive").find("required a doppler policy"), std::string::npos);
  EXPECT_NE(error_of(replaced(bytes, "doppler-policy 1", "doppler-policy 2")).find("version '2'; required 1"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(bytes, "node depth", "node breadth")).find("'node breadth'; required 'node depth'"),
            std::string::npos);
  EXPECT_NE(error_of(bytes.substr(0, bytes.size() - 5)).find("damaged or cut short"), std::string::npos);
}

TEST(APolicyFile, NamesItsPolicyAndIsRefusedIfItIsNotThatOfItsArchitecture) {
  const std::string bytes = policy_to_bytes(small_policy());
  EXPECT_NE(bytes.find(R"("policy":"doppler")"), std::string::npos);
  EXPECT_NE(error_of(replaced(bytes, R"("policy":"doppler")", R"("policy":"placeto")")).find("policy 'placeto' with"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(bytes, "gnn width", "abc width")).find("found architecture 'abc width"),
            std::string::npos);
  // The first files did not name it.
  EXPECT_EQ(error_of(replaced(bytes, R"("policy":"doppler",)", "")), "");
}

TEST(APolicyFile, WithNumbersThatAreNotFiniteIsRefused) {
  PolicyFile file = small_policy();
  file.parameters[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(error_of(policy_to_bytes(file)).find("required finite numbers"), std::string::npos);
}

TEST(APolicyFile, OfAnUnknownArchitectureIsRefused) {
  for (const std::string text :
       {"", "gnn", "gnn width 33 layers 2 messages episode", "gnn width 32 layers 99 messages episode",
        "gnn width 32 layers 2 messages never", "gnn width 32 layers 2 messages episode and more",
        "gnn width 99999999999 layers 2 messages episode"})
    EXPECT_THROW(make_policy(text, Rng(0)), InputError) << text;
}

TEST(APolicyFile, WithTheWrongNumberOfParametersIsRefused) {
  PolicyFile file = small_policy();
  file.parameters.pop_back();
  EXPECT_THROW(policy_from("file", file), InputError);
}

// What small_policy() would be if the last two device features did not exist yet: their rows, 32 numbers each, lie
// before the last row of the head.
std::string bytes_of_before() {
  PolicyFile file = small_policy();
  file.adam_mean.clear();
  file.adam_square.clear();
  file.training.clear();
  const auto end = file.parameters.end() - 32;
  file.parameters.erase(end - 2 * 32, end);
  return replaced(policy_to_bytes(file), R"("device cluster","device other_clusters",)", "");
}

TEST(APolicyFile, OfBeforeTheLastDeviceFeaturesDecidesAsItDid) {
  const std::vector<float> all = small_policy().parameters;
  const std::vector<float> back = parse_policy("file", bytes_of_before()).parameters;
  ASSERT_EQ(back.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_new = i + 3 * 32 >= all.size() && i + 32 < all.size();
    EXPECT_EQ(back[i], is_new ? 0 : all[i]) << i;
  }
}

TEST(APolicyFile, OfOtherFeaturesThanThoseOfBeforeIsRefused) {
  EXPECT_NE(error_of(replaced(bytes_of_before(), "device idle", "device busy")).find("'device busy'; required"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(bytes_of_before(), R"("device idle",)", "")).find("required 'device idle'"),
            std::string::npos);
  // A checkpoint would go on with an optimiser that does not know them.
  PolicyFile checkpoint = small_policy();
  checkpoint.parameters.resize(checkpoint.parameters.size() - 2 * 32);
  checkpoint.adam_mean = checkpoint.adam_square = checkpoint.parameters;
  const std::string bytes = replaced(policy_to_bytes(checkpoint), R"("device cluster","device other_clusters",)", "");
  EXPECT_NE(error_of(bytes).find("required 'device cluster'"), std::string::npos);
}

TEST(TheShippedPolicy, IsSoundAndSmall) {
  const PolicyFile file = shipped_policy();
  EXPECT_LT(policy_to_bytes(file).size(), 300'000U);  // "a few hundred kB at most"
  EXPECT_EQ(policy_from("shipped", file)->parameters().size(), file.parameters.size());
  EXPECT_NE(file.made_by.find("train"), std::string::npos) << file.made_by;
}

// None of the six was trained or validated on (models/README.md). In units of 1e10; long runs of search know these.
TEST(TheShippedPolicy, AloneIsWithinFivePercentOfTheBestKnownOnThePublishedGraphs) {
  constexpr double kKnown[] = {1200.07, 56.70, 166.72, 122.62, 166.73, 166.56};
  const TrainedPolicy policy("shipped", shipped_policy(), {});
  MethodOptions options;
  options.budget = Budget::unlimited();
  const auto graphs = test::published_graphs();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const auto owned = test::published_task(graphs[i]);
    if (!owned) GTEST_SKIP() << "no published graphs at " << DOPPLER_SHARED_DATA;
    const Placement placement = policy.zero_shot(owned->problem(), owned->objective(), options).placement;
    EXPECT_LT(owned->objective().value(placement) / 1e10, 1.05 * kKnown[i]) << graphs[i].file;
  }
}

}  // namespace
}  // namespace doppler
