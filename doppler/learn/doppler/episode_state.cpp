#include "doppler/learn/doppler/episode_state.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace doppler {
namespace {

float squash(double value, double scale) { return value > 0 ? static_cast<float>(value / (value + scale)) : 0.0F; }
float within_two(double value) { return static_cast<float>(std::clamp(value, -2.0, 2.0)); }
float share(float part, float whole) { return whole > 0 ? part / whole : 0.0F; }

}  // namespace

std::size_t feature_count(DeviceFeatureSet set) {
  return set == DeviceFeatureSet::paper ? kPaperDeviceFeatures.size() : kDeviceFeatureCount;
}

void EpisodeState::bind(const PolicyInput& input) {
  input_ = &input;
  devices_ = input.device_count();
  const std::size_t ops = input.op_count();
  device_of_op_.resize(ops);
  missing_.resize(ops);
  start_of_op_.resize(ops);
  end_of_op_.resize(ops);
  inflow_.resize(ops * devices_);
  outflow_.resize(ops * devices_);
  assigned_.resize(input.problem().has_groups() ? ops : 0);
  unit_device_.resize(assigned_.size());
  for (auto* times : {&available_, &load_, &arrival_, &start_, &finish_, &moved_}) times->resize(devices_);
  for (auto* shares : {&inputs_, &inputs_count_, &coparents_, &siblings_, &spread_}) shares->resize(devices_);
  cluster_load_.resize(std::size_t{devices_} * devices_);
  cluster_total_.resize(devices_);
  parameter_bytes_.resize(devices_);
  may_go_.resize(devices_);
  features_.resize(devices_ * feature_count_);
  slot_begin_.assign(1, 0);
  for (DeviceId device = 0; device < devices_; ++device)
    slot_begin_.push_back(slot_begin_.back() + input.problem().machine().device(device).slots);
  slot_end_.resize(slot_begin_.back());
  const bool booked = !are_delays(input.problem().rules().links);
  arrived_.resize(booked ? std::size_t{input.problem().graph().tensor_count()} * devices_ : 0);
  for (auto* clocks : {&link_free_, &queue_}) clocks->resize(booked ? std::size_t{devices_} * devices_ : 0);
  empty_memory_.reset();
  if (input.problem().memory_limited()) empty_memory_.emplace(input.problem());
  reset();
}

void EpisodeState::reset() {
  std::fill(device_of_op_.begin(), device_of_op_.end(), kUnplaced);
  std::fill(assigned_.begin(), assigned_.end(), 0);
  std::fill(inflow_.begin(), inflow_.end(), 0.0F);
  std::fill(outflow_.begin(), outflow_.end(), 0.0F);
  std::fill(slot_end_.begin(), slot_end_.end(), 0.0);
  std::fill(available_.begin(), available_.end(), 0.0);
  std::fill(arrived_.begin(), arrived_.end(), Costs::kNever);
  std::fill(link_free_.begin(), link_free_.end(), 0.0);
  std::fill(load_.begin(), load_.end(), 0.0);
  std::fill(cluster_load_.begin(), cluster_load_.end(), 0.0);
  std::fill(cluster_total_.begin(), cluster_total_.end(), 0.0);
  std::fill(parameter_bytes_.begin(), parameter_bytes_.end(), 0);
  for (OpId op = 0; op < input_->op_count(); ++op)
    missing_[op] = static_cast<std::uint32_t>(input_->producers(op).size());
  memory_ = empty_memory_;
}

void EpisodeState::observe(OpId op) {
  find_choices(op);
  time_devices(op);
  if (set_ == DeviceFeatureSet::paper) {
    write_paper_features(op);
  } else {
    sum_affinities(op);
    write_features(op);
  }
}

void EpisodeState::find_choices(OpId op) {
  const Problem& problem = input_->problem();
  const auto allowed = problem.devices(op);
  std::fill(may_go_.begin(), may_go_.end(), 0);
  choices_ = 0;
  if (!assigned_.empty() && assigned_[op]) {
    may_go_[unit_device_[op]] = 1;
    choices_ = 1;
    return;
  }
  for (const DeviceId device : allowed)
    if (!memory_ || memory_->fits(op, device)) {
      may_go_[device] = 1;
      ++choices_;
    }
  if (choices_ == 0) {
    may_go_[memory_->least_excess(op)] = 1;
    choices_ = 1;
  }
}

void EpisodeState::time_devices(OpId op) {
  const Costs& costs = input_->problem().costs();
  std::fill(arrival_.begin(), arrival_.end(), 0.0);
  std::fill(moved_.begin(), moved_.end(), 0.0);
  std::fill(inputs_count_.begin(), inputs_count_.end(), 0.0F);
  for (const PolicyInput::Edge& edge : input_->producers(op)) inputs_count_[device_of_op_[edge.op]] += 1;
  switch (input_->problem().rules().links) {
    case Links::channels:
      time_channels(op);
      break;
    case Links::receiver:
      time_copies(op);
      break;
    case Links::free:
    case Links::shared:
      for (const PolicyInput::Edge& edge : input_->producers(op)) {
        const DeviceId from = device_of_op_[edge.op];
        const Seconds end = end_of_op_[edge.op];
        for (DeviceId device = 0; device < devices_; ++device) {
          const Seconds transfer = costs.transfer_time(edge.tensor, from, device);
          moved_[device] += transfer;
          arrival_[device] = std::max(arrival_[device], end + transfer);
        }
      }
  }
  for (DeviceId device = 0; device < devices_; ++device) {
    start_[device] = std::max(arrival_[device], available_[device]);
    finish_[device] = start_[device] + costs.op_time(op, device);
  }
}

// A transfer begins when its producer has ended and the link has moved what was booked before. (The simulator serves
// them in the order in which producers end, which is about the order in which ops are placed.)
void EpisodeState::time_channels(OpId op) {
  const Costs& costs = input_->problem().costs();
  for (const PolicyInput::Edge& edge : input_->producers(op)) {
    const std::size_t row = std::size_t{device_of_op_[edge.op]} * devices_;
    std::copy_n(link_free_.data() + row, devices_, queue_.data() + row);
  }
  for (const PolicyInput::Edge& edge : input_->producers(op)) {
    const DeviceId from = device_of_op_[edge.op];
    const Seconds end = end_of_op_[edge.op];
    const Seconds* const arrived = arrived_.data() + std::size_t{edge.tensor} * devices_;
    Seconds* const queue = queue_.data() + std::size_t{from} * devices_;
    for (DeviceId device = 0; device < devices_; ++device) {
      Seconds here = device == from ? end : arrived[device];
      if (here == Costs::kNever) {
        const Seconds transfer = costs.transfer_time(edge.tensor, from, device);
        moved_[device] += transfer;
        here = std::max(end, queue[device]) + transfer;
        queue[device] = here - transfer + transfer / input_->problem().machine().link(from, device).channels;
      }
      arrival_[device] = std::max(arrival_[device], here);
    }
  }
}

// The receiver copies what it does not have one after the other, as soon as it is free and the last of it is there.
void EpisodeState::time_copies(OpId op) {
  const Costs& costs = input_->problem().costs();
  for (const PolicyInput::Edge& edge : input_->producers(op)) {
    const DeviceId from = device_of_op_[edge.op];
    const Seconds end = end_of_op_[edge.op];
    const Seconds* const arrived = arrived_.data() + std::size_t{edge.tensor} * devices_;
    for (DeviceId device = 0; device < devices_; ++device) {
      arrival_[device] = std::max(arrival_[device], end);
      if (device != from && arrived[device] == Costs::kNever)
        moved_[device] += costs.transfer_time(edge.tensor, from, device);
    }
  }
  for (DeviceId device = 0; device < devices_; ++device)
    if (moved_[device] > 0) arrival_[device] = std::max(arrival_[device], available_[device]) + moved_[device];
}

// Books the transfers that the observed op needs on its device.
void EpisodeState::book_transfers(OpId op, DeviceId device) {
  const Problem& problem = input_->problem();
  const Links links = problem.rules().links;
  if (are_delays(links)) return;
  for (const PolicyInput::Edge& edge : input_->producers(op)) {
    const DeviceId from = device_of_op_[edge.op];
    Seconds& arrived = arrived_[std::size_t{edge.tensor} * devices_ + device];
    if (from == device || arrived != Costs::kNever) continue;
    if (links == Links::receiver) {
      arrived = arrival_[device];
      continue;
    }
    Seconds& free = link_free_[std::size_t{from} * devices_ + device];
    const Seconds transfer = problem.costs().transfer_time(edge.tensor, from, device);
    arrived = std::max(end_of_op_[edge.op], free) + transfer;
    // Several channels are as one that is as much faster.
    free = arrived - transfer + transfer / problem.machine().link(from, device).channels;
  }
}

void EpisodeState::spread(std::vector<float>& amount) {
  if (input_->uniform_links()) return;
  for (DeviceId to = 0; to < devices_; ++to) {
    spread_[to] = 0;
    for (DeviceId from = 0; from < devices_; ++from) spread_[to] += amount[from] * input_->nearness(from, to);
  }
  amount.swap(spread_);
}

void EpisodeState::sum_affinities(OpId op) {
  const std::size_t row = std::size_t{op} * devices_;
  std::copy_n(inflow_.data() + row, devices_, inputs_.data());
  std::fill(coparents_.begin(), coparents_.end(), 0.0F);
  std::fill(siblings_.begin(), siblings_.end(), 0.0F);
  for (const PolicyInput::Edge& edge : input_->consumers(op)) {
    const float* flow = inflow_.data() + std::size_t{edge.op} * devices_;
    for (DeviceId device = 0; device < devices_; ++device) coparents_[device] += flow[device];
  }
  for (const PolicyInput::Edge& edge : input_->producers(op)) {
    const float* flow = outflow_.data() + std::size_t{edge.op} * devices_;
    for (DeviceId device = 0; device < devices_; ++device) siblings_[device] += flow[device];
  }
}

void EpisodeState::write_features(OpId op) {
  const Costs& costs = input_->problem().costs();
  const Seconds horizon = input_->horizon(), typical = input_->mean_compute() + 1e-9 * horizon;
  const Seconds own = costs.mean_time(op) + 1e-9 * horizon;
  Seconds first_finish = Costs::kNever, first_arrival = Costs::kNever, first_available = Costs::kNever;
  Seconds mean_load = 0, least_load = Costs::kNever;
  for (DeviceId device = 0; device < devices_; ++device) {
    if (may_go_[device]) first_finish = std::min(first_finish, finish_[device]);
    first_arrival = std::min(first_arrival, arrival_[device]);
    first_available = std::min(first_available, available_[device]);
    least_load = std::min(least_load, load_[device]);
    mean_load += load_[device] / devices_;
  }
  const float inputs = std::accumulate(inputs_.begin(), inputs_.end(), 0.0F);
  const float coparents = std::accumulate(coparents_.begin(), coparents_.end(), 0.0F);
  const float siblings = std::accumulate(siblings_.begin(), siblings_.end(), 0.0F);
  const float edges = static_cast<float>(input_->producers(op).size());
  const std::uint32_t cluster = input_->cluster(op);
  spread(inputs_);
  spread(coparents_);
  spread(siblings_);
  for (DeviceId device = 0; device < devices_; ++device) {
    float* x = features_.data() + device * kDeviceFeatureCount;
    if (!may_go_[device]) {
      std::fill_n(x, kDeviceFeatureCount, 0.0F);
      continue;
    }
    const Seconds late = finish_[device] - first_finish;
    const Bytes capacity = input_->problem().machine().device(device).memory;
    const Bytes used = parameter_bytes_[device] + input_->problem().graph().parameter_bytes(op);
    *x++ = within_two(8 * late / horizon);
    *x++ = squash(late, typical);
    *x++ = late <= 0 ? 1.0F : 0.0F;
    *x++ = within_two(4 * (load_[device] - mean_load) / horizon);
    *x++ = within_two(4 * (available_[device] - first_available) / horizon);
    *x++ = squash(start_[device] - available_[device], typical);
    *x++ = squash(moved_[device], own + typical);
    *x++ = share(inputs_[device], inputs);
    *x++ = share(inputs_count_[device], edges);
    *x++ = share(coparents_[device], input_->coparents(op));
    *x++ = share(coparents_[device], coparents);
    *x++ = share(siblings_[device], siblings);
    *x++ = within_two(load_[device] / horizon);
    *x++ = load_[device] == 0 ? 1.0F : 0.0F;
    *x++ = within_two((start_[device] + input_->b_level(op) - horizon) / horizon);
    *x++ = squash(load_[device] - least_load, own);
    const Seconds time = costs.op_time(op, device);
    *x++ = time == costs.mean_time(op) ? 0.0F : within_two(std::log((time + 1e-9 * horizon) / own) / 2);
    *x++ = capacity > 0 ? within_two(static_cast<double>(used) / static_cast<double>(capacity)) : 0.0F;
    *x++ = within_two(available_[device] / horizon);
    *x++ = squash(arrival_[device] - first_arrival, typical);
    const Seconds own_cluster = cluster_load_[std::size_t{cluster} * devices_ + device];
    *x++ = cluster_total_[cluster] > 0 ? static_cast<float>(own_cluster / cluster_total_[cluster]) : 0.0F;
    *x++ = load_[device] > 0 ? static_cast<float>(std::max(0.0, 1 - own_cluster / load_[device])) : 0.0F;
  }
}

void EpisodeState::write_paper_features(OpId op) {
  const Seconds horizon = input_->horizon();
  for (DeviceId device = 0; device < devices_; ++device) {
    Seconds load = 0, first = 0, last = 0;
    bool any = false;
    for (const PolicyInput::Edge& edge : input_->producers(op)) {
      if (device_of_op_[edge.op] != device) continue;
      const Seconds start = start_of_op_[edge.op], end = end_of_op_[edge.op];
      load += end - start;
      first = any ? std::min(first, start) : start;
      last = std::max(last, end);
      any = true;
    }
    float* x = features_.data() + device * kPaperDeviceFeatures.size();
    *x++ = within_two(load_[device] / horizon);
    *x++ = within_two(load / horizon);
    *x++ = within_two(first / horizon);
    *x++ = within_two(last / horizon);
    *x++ = within_two(start_[device] / horizon);
    *x++ = any ? 1.0F : 0.0F;
  }
}

void EpisodeState::settle(OpId op, DeviceId device) {
  const Problem& problem = input_->problem();
  book_transfers(op, device);
  device_of_op_[op] = device;
  start_of_op_[op] = start_[device];
  end_of_op_[op] = finish_[device];
  const Seconds work = finish_[device] - start_[device];
  load_[device] += work;
  cluster_load_[std::size_t{input_->cluster(op)} * devices_ + device] += work;
  cluster_total_[input_->cluster(op)] += work;
  parameter_bytes_[device] += problem.graph().parameter_bytes(op);
  const auto begin = slot_end_.begin() + slot_begin_[device], end = slot_end_.begin() + slot_begin_[device + 1];
  *std::min_element(begin, end) = finish_[device];
  available_[device] = *std::min_element(begin, end);
  for (const PolicyInput::Edge& edge : input_->consumers(op))
    inflow_[std::size_t{edge.op} * devices_ + device] += edge.weight;
  for (const PolicyInput::Edge& edge : input_->producers(op))
    outflow_[std::size_t{edge.op} * devices_ + device] += edge.weight;
  if (!assigned_.empty() && assigned_[op]) return;
  if (memory_) memory_->add(op, device);
  if (assigned_.empty()) return;
  for (const OpId member : problem.unit(op)) {
    assigned_[member] = 1;
    unit_device_[member] = device;
  }
}

}  // namespace doppler
