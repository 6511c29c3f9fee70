#include "doppler/sim/jitter_sample.h"

namespace doppler {
namespace {

// Tables take about a hundred bytes per op and edge; beyond a gigabyte the draws take turns in one table.
constexpr std::size_t kMostTableRows = 10'000'000;

Problem without_ties(const Problem& problem) {
  Rules rules = problem.rules();
  rules.ties = Ties::by_id;  // times that vary do not tie
  return problem.with(rules);
}

}  // namespace

bool JitterSample::keeps_tables(const Problem& problem, std::size_t draws) {
  // A table has a row per op and edge, with a column per class of devices or links, and the class of every link.
  const std::size_t columns = 1 + (problem.costs().device_classes() + problem.costs().link_classes()) / 8;
  const std::size_t devices = problem.device_count();
  const std::size_t rows = (std::size_t{problem.op_count()} + problem.graph().edge_count()) * columns;
  return draws <= 1 || (rows + devices * devices / 16) * draws <= kMostTableRows;
}

JitterSample::JitterSample(const Problem& problem, Jitter jitter, std::size_t draws, std::uint64_t stream)
    : problem_(jitter.varies() ? without_ties(problem) : problem),
      jitter_(std::move(jitter)),
      draws_(jitter_.varies() ? draws : 1),
      stream_(stream) {
  if (!keeps_tables(problem, draws_)) return;
  for (std::size_t draw = 0; draw < draws_; ++draw) simulators_.push_back(make(draw));
}

Simulator JitterSample::make(std::size_t draw) const {
  return Simulator(problem_, JitterDraw::number(draw, jitter_, problem_.rules().seed, stream_));
}

}  // namespace doppler
