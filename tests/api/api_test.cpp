#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "doppler/errors.h"
#include "doppler/load.h"
#include "doppler/place.h"
#include "doppler/run.h"
#include "doppler/simulate.h"
#include "doppler/train.h"

// What the public headers promise, by nothing but them.
namespace doppler {
namespace {

// Two ops of 2 s that a third of 1 s reads; moving a result takes 1 s.
Graph fork() {
  GraphBuilder builder("fork");
  const OpId a = builder.add_op({.name = "a", .explicit_times = {{"*", 2}}});
  const OpId b = builder.add_op({.name = "b", .explicit_times = {{"*", 2}}});
  const OpId c = builder.add_op({.name = "c", .explicit_times = {{"*", 1}}});
  for (const OpId producer : {a, b}) builder.add_consumer(builder.add_tensor(producer, 8, 1.0), c);
  return std::move(builder).build();
}

TEST(ThePublicApi, PlacesAGraphThatWasBuiltInCode) {
  // Side by side: 2, one result moves until 3, c until 4. One device: 5.
  const Problem problem(fork(), load_machine("uniform:2"));
  const PlaceResult found = place(problem, {.method = "exact", .evaluations = 10'000});
  EXPECT_EQ(found.run.outcome.made.makespan, 4);
  EXPECT_EQ(found.single_device, 5);
  EXPECT_TRUE(found.run.outcome.optimal);
  EXPECT_EQ(found.run.outcome.made.budget, "10000 evaluations");
  EXPECT_NE(to_text(found).find("proven optimal"), std::string::npos);
  EXPECT_TRUE(std::get<PlaceResult>(parse_result("result", to_json(found))) == found);
}

// The examples at the head of graph.h, machine.h, problem.h, placement.h and bounds.h, put together.
TEST(ThePublicApi, DoesWhatTheExamplesInItsHeadersShow) {
  GraphBuilder builder("two products");
  const OpId a = builder.add_op({.name = "a", .kind = "matmul", .flops = 2e12});
  const OpId b = builder.add_op({.name = "b", .kind = "matmul", .flops = 2e12});
  builder.add_consumer(builder.add_tensor(a, 64 << 20), b);
  const Graph graph = std::move(builder).build();

  std::vector<Device> devices(2);
  devices[0] = {.name = "gpu0", .type = "gpu", .rates = {{.flops_per_second = 9e12}}, .memory = 16ull << 30};
  devices[1] = {.name = "cpu0", .type = "cpu", .rates = {{.flops_per_second = 1e12}}};
  const Machine mine("mine", devices, std::vector<Link>(4, {.latency = 1e-5, .bytes_per_second = 1e10}));
  EXPECT_TRUE(parse_machine("mine.json", machine_to_json(mine)).device(0) == mine.device(0));

  const Problem problem(graph, load_machine("p100x4"), {.discipline = Discipline::priority});
  EXPECT_EQ(problem.devices(b).size(), 4u);
  const Problem elsewhere = problem.on(mine);
  EXPECT_EQ(elsewhere.device_count(), 2u);

  const Placement placement{.device_of_op = {0, 0}};
  const std::string text = placement_to_json(placement, provenance_of(elsewhere, "mine"));
  EXPECT_TRUE(parse_placement("mine.json", text).placement == placement);

  // A chain is bounded by itself on its fastest device: 2 × 2e12 / 9e12 s, which the placement takes.
  const LowerBound bound = lower_bound(elsewhere);
  const Seconds makespan = simulate(elsewhere, placement).outcome.made.makespan;
  EXPECT_NEAR(makespan, 4.0 / 9.0, 1e-12);
  EXPECT_NEAR(gap(makespan, bound.value), 0, 1e-9);
  EXPECT_TRUE(reaches(makespan, bound.value));
}

TEST(ThePublicApi, ComparesMethodsAndAddsTheStrongestCheapOne) {
  const Problem problem(fork(), load_machine("uniform:2"));
  const Comparison found = compare(problem, {"random", "round_robin", "random"}, {.evaluations = 10, .graph = "mine"});
  // Two were asked for, one of them twice; the third row is the rival that nobody asked for.
  ASSERT_EQ(found.rows.size(), 3u);
  EXPECT_EQ(found.rows[0].outcome.made.method, "random");
  EXPECT_EQ(found.rows[0].outcome.made.graph, "mine");
  EXPECT_FALSE(found.rows[1].added);
  EXPECT_TRUE(found.rows[2].added);
  EXPECT_FALSE(better(found.rows[0].outcome, found.rows[2].outcome));

  std::stop_source user;
  user.request_stop();
  EXPECT_TRUE(compare(problem, {"heft"}, {.stop = user.get_token()}).rows.empty());
  EXPECT_THROW(check({"heft"}, {.train = 1}), InputError);
  EXPECT_THROW(check({"no such method"}, {}), InputError);
}

TEST(ThePublicApi, RefusesWhatCannotBe) {
  const Problem problem(fork(), load_machine("uniform:2")), other(fork(), load_machine("uniform:2"));
  EXPECT_THROW(place(problem, {.method = "no such method"}), InputError);
  EXPECT_THROW(check({.method = "heft", .train = 1}), InputError);
  const auto of_another = std::make_shared<ExactObjective>(other);
  EXPECT_THROW(place(problem, {.method = "heft", .objective = of_another}), InputError);
  EXPECT_THROW(simulate(problem, {.device_of_op = {0, 0}}), InputError);
  EXPECT_THROW(simulate(problem, {.device_of_op = {0, 0, 7}}), InputError);
  EXPECT_THROW(make_executor(problem), InputError);  // it has no program
  EXPECT_THROW(make_executor(problem, {.devices = "abacus"}), InputError);
  EXPECT_THROW(make_executor(problem, {.devices = "emulated", .slowdown = {{2, 2.0}}}), InputError);
  EXPECT_THROW(train({{"fork", problem}}, "/no/such/directory/p", {.episodes = 16}), InputError);
}

TEST(ThePublicApi, SaysWhatAPlacementIsWorth) {
  const Problem problem(fork(), load_machine("uniform:2"));
  const SimulationResult one = simulate(problem, {.device_of_op = {0, 0, 0}});
  EXPECT_EQ(one.outcome.made.makespan, 5);
  EXPECT_FALSE(one.outcome.optimal);
  EXPECT_EQ(one.devices[0].ops, 3u);
  EXPECT_EQ(simulate(problem, {.device_of_op = {0, 1, 0}}).outcome.made.makespan, 4);
}

TEST(ThePublicApi, RunsAProgramFromAFileOnEmulatedDevicesAndOnCores) {
  const std::string path = testing::TempDir() + "/api_test.ein";
  std::ofstream(path) << "size i = 16, j = 16, k = 16\ninput a[i, j]\ninput b[j, k]\n"
                         "c[i, k] = sum[j] a[i, j] * b[j, k]\noutput c\n";
  const LoadedProblem loaded = load_problem(path, load_machine("p100x4").with_jitter(0));
  std::filesystem::remove(path);
  ASSERT_TRUE(loaded.file.has_program);
  const PlaceResult found = place(loaded.problem, {.method = "heft"});
  const auto emulated = make_executor(loaded.problem, {.devices = "emulated"});
  const RunResult run_once = run(*emulated, found.placement, {.repeat = 2, .warmup = 0});
  EXPECT_EQ(run_once.devices, "emulated");
  EXPECT_EQ(run_once.times.size(), 2u);
  EXPECT_GE(run_once.measured, 0.9 * found.run.outcome.made.makespan);
  EXPECT_EQ(run_once.device_times.size(), 4u);
  const auto cores = make_executor(loaded.problem);
  EXPECT_TRUE(cores->limits().computes);
  const RunResult computed = run(*cores, found.placement, {.repeat = 2, .warmup = 0});
  EXPECT_EQ(computed.times.size(), 2u);
  EXPECT_GT(computed.measured, 0);
}

// An executor that says only how long a run took.
class Stopwatch final : public Executor {
 public:
  explicit Stopwatch(Problem problem) : problem_(std::move(problem)) {}
  std::string_view name() const override { return "stopwatch"; }
  const Problem& problem() const override { return problem_; }
  Timeline run(const Placement&) override {
    Timeline timeline;
    timeline.makespan = 3;
    return timeline;
  }

 private:
  Problem problem_;
};

TEST(ThePublicApi, TakesExecutorsFromOutside) {
  Stopwatch stopwatch(Problem(fork(), load_machine("uniform:2")));
  EXPECT_EQ(run(stopwatch, {.device_of_op = {0, 1, 0}}, {.repeat = 3, .warmup = 0}).measured, 3);
}

TEST(ThePublicApi, TrainsAPolicyThatPlaceCanUse) {
  const Problem problem(fork(), load_machine("uniform:2"));
  const std::string path = testing::TempDir() + "/api_test.policy";
  const TrainingResult trained = train({{"fork", problem}}, path, {.episodes = 32, .seed = 1});
  ASSERT_EQ(trained.tasks.size(), 1u);
  EXPECT_EQ(trained.tasks[0].best, 4);
  EXPECT_EQ(place(problem, {.method = "doppler", .evaluations = 65, .policy = path}).run.outcome.made.makespan, 4);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace doppler
