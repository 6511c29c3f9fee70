// Whole timelines of one small graph under every kind of rules, as text files beside this one. A difference means that
// the model has drifted; if that was intended, explain it in the commit and replace the file by what the test prints.

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/base/file.h"
#include "doppler/base/rng.h"
#include "doppler/graph/generate.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct Golden {
  const char* name;
  Rules rules;
  JitterDraw draw = {};
};

std::string timeline_as_text(const Rules& rules, const JitterDraw& draw) {
  ChainOfBlocksOptions options;
  options.ops = 24;
  options.costs.communication_ratio = 0.5;
  const Graph graph = generate_chain_of_blocks(options);
  const Machine machine = load_machine("p100x4");
  const Problem problem(graph, machine, rules);
  Placement placement;
  std::vector<double> urgency;
  Rng rng(1);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    placement.device_of_op.push_back(rng.below(4));
    urgency.push_back(rng.uniform());
  }
  placement.priority = ranks_of(urgency);
  const Timeline timeline = Simulator(problem, draw).simulate(placement);
  std::string text = fmt::format("makespan {:.6f} ms\n", timeline.makespan * 1e3);
  for (const auto& run : timeline.executions)
    text += fmt::format("op {:2} device {} ready {:.6f} start {:.6f} end {:.6f}\n", run.op, run.device, run.ready * 1e3,
                        run.start * 1e3, run.end * 1e3);
  for (const auto& move : timeline.transfers)
    text += fmt::format("tensor {:2} {} -> {} queued {:.6f} start {:.6f} end {:.6f}\n", move.tensor, move.src, move.dst,
                        move.queued * 1e3, move.start * 1e3, move.end * 1e3);
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    text += fmt::format("device {} peak {} bytes\n", id, timeline.peak_memory[id]);
  return text;
}

class AGoldenTimeline : public testing::TestWithParam<Golden> {};

TEST_P(AGoldenTimeline, HasNotDrifted) {
  const std::string path = fmt::format("{}/{}.txt", DOPPLER_GOLDEN, GetParam().name);
  const std::string found = timeline_as_text(GetParam().rules, GetParam().draw);
  EXPECT_EQ(found, std::filesystem::exists(path) ? read_file(path) : std::string()) << path;
}

const Golden kGolden[] = {
    {"fifo", {}},
    {"fifo_published_ties", {.ties = Ties::published}},
    {"fifo_channels", {.links = Links::channels}},
    {"priority", {.discipline = Discipline::priority}},
    {"ordered", {.discipline = Discipline::ordered}},
    {"random", {.discipline = Discipline::random, .seed = 3}},
    {"bulk_synchronous", {.bulk_synchronous = true}},
    {"jitter", {}, {.jitter = 0.3, .seed = 3}},
};
INSTANTIATE_TEST_SUITE_P(EveryRule, AGoldenTimeline, testing::ValuesIn(kGolden),
                         [](const auto& suite) { return std::string(suite.param.name); });

}  // namespace
}  // namespace doppler
