#include "doppler/learn/doppler/policy_input.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "doppler/base/error.h"
#include "doppler/graph/levels.h"
#include "doppler/place/memory.h"
#include "doppler/place/partition/metis.h"

namespace doppler {
namespace {

// Features stay within a few units, whatever the graph.
float within_four(double value) { return static_cast<float>(std::clamp(value, -4.0, 4.0)); }
double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double log_ratio(double part, double whole) { return std::log1p(ratio(part, whole)); }

}  // namespace

PolicyInput::PolicyInput(const Problem& problem, Watch watch) : problem_(problem) {
  constexpr std::uint64_t kStepsPerEdge = 8;
  watch.step(kStepsPerEdge * problem.graph().edge_count());
  lay_out_edges();
  watch.step(kStepsPerEdge * problem.graph().edge_count());
  measure(watch);
  measure_links(watch);
  find_clusters(watch);
  fill_features(watch);
}

void PolicyInput::lay_out_edges() {
  const Graph& graph = problem_.graph();
  const Costs& costs = problem_.costs();
  producer_begin_.assign(1, 0);
  consumer_begin_.assign(1, 0);
  producers_.reserve(graph.edge_count());
  consumers_.reserve(graph.edge_count());
  for (OpId op = 0; op < graph.op_count(); ++op) {
    for (const TensorId tensor : graph.inputs(op))
      producers_.push_back({graph.producer(tensor), tensor, static_cast<float>(costs.mean_transfer(tensor))});
    for (const TensorId tensor : graph.outputs(op))
      for (const OpId consumer : graph.consumers(tensor))
        consumers_.push_back({consumer, tensor, static_cast<float>(costs.mean_transfer(tensor))});
    producer_begin_.push_back(static_cast<std::uint32_t>(producers_.size()));
    consumer_begin_.push_back(static_cast<std::uint32_t>(consumers_.size()));
  }
  std::vector<float> inputs(graph.op_count(), 0.0F);
  for (OpId op = 0; op < graph.op_count(); ++op)
    for (const Edge& edge : producers(op)) inputs[op] += edge.weight;
  coparents_.assign(graph.op_count(), 0.0F);
  for (OpId op = 0; op < graph.op_count(); ++op)
    for (const Edge& edge : consumers(op)) coparents_[op] += std::max(0.0F, inputs[edge.op] - edge.weight);
}

void PolicyInput::measure(Watch& watch) {
  const Graph& graph = problem_.graph();
  const Costs& costs = problem_.costs();
  Levels still = levels(graph, costs.mean_times(), {});
  Levels moved = levels(graph, costs.mean_times(), costs.mean_transfers());
  b_level_ = std::move(still.bottom);
  t_level_ = std::move(still.top);
  b_level_moved_ = std::move(moved.bottom);
  t_level_moved_ = std::move(moved.top);
  communication_.assign(op_count(), 0);
  for (OpId op = 0; op < op_count(); ++op) {
    watch.step(problem_.devices(op).size());
    // This is the time of the op if all devices shared it in proportion to their speeds.
    double speed = 0;
    for (const DeviceId device : problem_.devices(op)) {
      const Seconds time = costs.op_time(op, device);
      if (time > 0) speed += problem_.machine().device(device).slots / time;
    }
    work_per_device_ += speed > 0 ? 1 / speed : 0;
    mean_compute_ += costs.mean_time(op) / op_count();
    for (const TensorId tensor : graph.outputs(op))
      if (!graph.consumers(tensor).empty()) communication_[op] += costs.mean_transfer(tensor);
    mean_communication_ += communication_[op] / op_count();
  }
  horizon_ = std::max(still.longest, work_per_device_);
  if (horizon_ <= 0) horizon_ = 1;  // In a graph without work every feature is 0.
}

void PolicyInput::measure_links(Watch& watch) {
  const Costs& costs = problem_.costs();
  const DeviceId devices = device_count();
  const std::size_t classes = costs.link_classes();
  // Per kind of link, the time that all tensors take on it.
  std::vector<double> time(classes, 0);
  std::vector<std::pair<DeviceId, DeviceId>> example(classes);
  for (DeviceId a = 0; a < devices; ++a)
    for (DeviceId b = 0; b < devices; ++b)
      if (a != b) example[costs.link_class(a, b)] = {a, b};
  for (std::size_t kind = 0; kind < classes; ++kind) {
    if (example[kind].first == example[kind].second) continue;
    watch.step(problem_.graph().tensor_count());
    for (TensorId tensor = 0; tensor < problem_.graph().tensor_count(); ++tensor)
      time[kind] += costs.transfer_time(tensor, example[kind].first, example[kind].second);
  }
  const double slowest = classes > 0 ? *std::max_element(time.begin(), time.end()) : 0;
  nearness_.assign(std::size_t{devices} * devices, 0.0F);
  for (DeviceId a = 0; a < devices; ++a)
    for (DeviceId b = 0; b < devices; ++b) {
      const double far = a == b ? 0 : slowest > 0 ? time[costs.link_class(a, b)] / slowest : 1;
      nearness_[a * devices + b] = static_cast<float>(1 - far);
      if (a != b && far < 1) uniform_links_ = false;
    }
}

void PolicyInput::find_clusters(Watch& watch) {
  constexpr std::uint64_t kClusterSeed = 1;  // The same problem always has the same clusters.
  std::vector<std::uint32_t> group(op_count());
  std::iota(group.begin(), group.end(), 0U);
  cluster_ = metis_clusters(problem_, group, op_count(), device_count(), kClusterSeed, watch);
}

void PolicyInput::fill_features(Watch& watch) {
  const Costs& costs = problem_.costs();
  const DeviceId devices = device_count();
  const std::vector<std::uint32_t> depth = depths(problem_.graph());
  const double deepest = std::max(1U, *std::max_element(depth.begin(), depth.end()));
  double capacity = 0, footprints = 0;
  const StaticMemory sizes(problem_);
  if (problem_.memory_limited()) {
    for (DeviceId device = 0; device < devices; ++device)
      capacity += static_cast<double>(problem_.machine().device(device).memory);
    for (OpId op = 0; op < op_count(); ++op) footprints += static_cast<double>(sizes.footprint(op));
  }
  std::vector<std::uint32_t> position(op_count());
  for (std::uint32_t i = 0; i < op_count(); ++i) position[problem_.graph().topological_order()[i]] = i;

  node_features_.reserve(op_count() * kNodeFeatureCount);
  for (OpId op = 0; op < op_count(); ++op) {
    watch.step(kNodeFeatureCount + problem_.devices(op).size());
    const Seconds compute = costs.mean_time(op), fastest = costs.fastest(op);
    Seconds slowest = fastest;
    for (const DeviceId device : problem_.devices(op)) slowest = std::max(slowest, costs.op_time(op, device));
    const double edges_in = static_cast<double>(producers(op).size());
    const double edges_out = static_cast<double>(consumers(op).size());
    const float row[] = {
        within_four(log_ratio(compute, mean_compute_)),
        within_four(ratio(compute, mean_compute_) / 4),
        within_four(log_ratio(communication_[op], mean_communication_)),
        within_four(ratio(communication_[op], mean_communication_) / 4),
        within_four(log_ratio(communication_[op], compute) / 2),
        within_four(b_level_[op] / horizon_),
        within_four(t_level_[op] / horizon_),
        within_four(log_ratio(b_level_moved_[op], horizon_)),
        within_four(log_ratio(t_level_moved_[op], horizon_)),
        within_four(std::log1p(edges_in) / 2),
        within_four(std::log1p(edges_out) / 2),
        within_four(depth[op] / deepest),
        within_four(static_cast<double>(position[op]) / op_count()),
        producers(op).empty() ? 1.0F : 0.0F,
        consumers(op).empty() ? 1.0F : 0.0F,
        within_four(devices / 8.0),
        within_four(work_per_device_ / horizon_),
        within_four(log_ratio(mean_communication_, mean_compute_) / 2),
        within_four(fastest > 0 ? std::log(slowest / fastest) / 2 : 0),
        within_four(static_cast<double>(problem_.devices(op).size()) / devices),
        within_four(ratio(static_cast<double>(sizes.footprint(op)) * devices, capacity)),
        within_four(ratio(footprints, capacity)),
    };
    static_assert(std::size(row) == kNodeFeatureCount);
    node_features_.insert(node_features_.end(), std::begin(row), std::end(row));
  }
}

}  // namespace doppler
