#pragma once

#include "doppler/sim/event_queue.h"
#include "doppler/sim/sim_tables.h"

namespace doppler {

// `fifo` with free links, one slot per device, and the event order of the published simulator: events at the
// same time happen in the order in which they were announced.
//
//   ready(v)   v joins its device's queue; an idle device starts the head of its queue
//   end(x)     the device starts the next op in its queue, then announces finish(x)
//   finish(x)  announces arrive(v) for each consumer v, in edge order, after the transfer time (0 on the same
//   device) arrive(v)  the last missing input announces ready(v)
//
// Events without delay go to a plain queue, so that only ends and real transfers pass through the priority
// queue: whatever was announced for the present time before it came is older than anything announced now.
// Internal to doppler/sim.
class PublishedEngine {
 public:
  explicit PublishedEngine(const SimTables& tables)
      : tables_(tables),
        states_(initial_states(tables)),
        next_in_queue_(tables.op_count()),
        devices_(tables.device_count()),
        // Each op ends once and is ready, finishes and arrives at each consumer at most once.
        announced_(tables.op_count() + edge_count(tables)),
        future_(announced_.size()),
        now_(3 * std::size_t{tables.op_count()} + edge_count(tables)) {}

  template <typename Recorder>
  Seconds run(std::span<const DeviceId> device_of_op, Recorder& recorder) {
    return tables_.uniform() ? run<true>(device_of_op.data(), recorder)
                             : run<false>(device_of_op.data(), recorder);
  }

 private:
  enum class Kind : std::uint32_t { ready, end, finish, arrive, arrive_all };
  struct Event {
    Kind kind;
    std::uint32_t id;  // an op; for arrive_all the first edge of its tensor that leaves the device
  };
  struct DeviceState {
    OpId head, tail;
    bool queue_empty, busy;
  };

  static std::size_t edge_count(const SimTables& tables) { return tables.op(tables.op_count() - 1).edge_end; }

  void announce(Seconds time, Kind kind, std::uint32_t id) {
    if (time == time_) {
      now_[now_tail_++] = {kind, id};
    } else {
      announced_[announced_count_] = {kind, id};
      future_.push(time, announced_count_++);
    }
  }

  template <bool Uniform, typename Recorder>
  Seconds run(const DeviceId* device_of_op, Recorder& recorder) {
    time_ = 0;
    now_head_ = now_tail_ = announced_count_ = 0;
    std::fill(devices_.begin(), devices_.end(), DeviceState{0, 0, true, false});
    for (const OpId op : tables_.sources()) announce(0.0, Kind::ready, op);
    while (true) {
      while (now_head_ < now_tail_) happen<Uniform>(now_[now_head_++], device_of_op, recorder);
      if (future_.empty()) return time_;
      time_ = future_.top().time;
      now_head_ = now_tail_ = 0;
      while (!future_.empty() && future_.top().time == time_)
        now_[now_tail_++] = announced_[future_.pop().id];
    }
  }

  template <bool Uniform, typename Recorder>
  void happen(Event event, const DeviceId* device_of_op, Recorder& recorder) {
    switch (event.kind) {
      case Kind::ready: {
        const DeviceId device = device_of_op[event.id];
        enqueue(device, event.id);
        if (!devices_[device].busy) start_next<Uniform>(device, recorder);
        return;
      }
      case Kind::end: {
        const DeviceId device = device_of_op[event.id];
        devices_[device].busy = false;
        if (!devices_[device].queue_empty) start_next<Uniform>(device, recorder);
        announce(time_, Kind::finish, event.id);
        return;
      }
      case Kind::finish:
        return finish<Uniform>(event.id, device_of_op, recorder);
      case Kind::arrive:
        return arrive(event.id);
      case Kind::arrive_all: {
        const OpId producer = tables_.problem().graph().producer(tables_.edge(event.id).tensor);
        const SimTables::Edge* const end = &tables_.edge(0) + tables_.op(producer).edge_end;
        const SimTables::Edge* edge = &tables_.edge(event.id);
        for (const TensorId tensor = edge->tensor; edge != end && edge->tensor == tensor; ++edge)
          if (device_of_op[edge->consumer] != device_of_op[producer]) arrive(edge->consumer);
        return;
      }
    }
  }

  template <bool Uniform, typename Recorder>
  void finish(OpId op, const DeviceId* device_of_op, Recorder& recorder) {
    const DeviceId device = device_of_op[op];
    const SimTables::Op& record = tables_.op(op);
    TensorId moving = std::numeric_limits<TensorId>::max();
    for (std::uint32_t i = record.edge_begin; i < record.edge_end; ++i) {
      const SimTables::Edge& edge = tables_.edge(i);
      const DeviceId target = device_of_op[edge.consumer];
      if (target == device) {
        announce(time_, Kind::arrive, edge.consumer);
        continue;
      }
      const Seconds arrival = time_ + tables_.transfer_time<Uniform>(edge, device, target);
      recorder.transfer(edge.tensor, device, target, 0, time_, time_, arrival);
      if (Uniform && arrival > time_) {
        // All remote consumers hear at the same time, one after the other: one event for all.
        if (moving != edge.tensor) announce(arrival, Kind::arrive_all, i);
        moving = edge.tensor;
      } else {
        announce(arrival, Kind::arrive, edge.consumer);
      }
    }
  }

  void arrive(OpId op) {
    if (--states_[op].pending == 0) {
      states_[op].ready = time_;
      announce(time_, Kind::ready, op);
    }
  }

  void enqueue(DeviceId device, OpId op) {
    DeviceState& state = devices_[device];
    (state.queue_empty ? state.head : next_in_queue_[state.tail]) = op;
    state.tail = op;
    state.queue_empty = false;
  }

  template <bool Uniform, typename Recorder>
  void start_next(DeviceId device, Recorder& recorder) {
    DeviceState& state = devices_[device];
    const OpId op = state.head;
    state.queue_empty = op == state.tail;
    state.head = next_in_queue_[op];
    state.busy = true;
    const Seconds end = time_ + tables_.op_time<Uniform>(op, device);
    recorder.execution(op, device, 0, states_[op].ready, time_, end);
    states_[op] = {0.0, tables_.op(op).in_degree};
    announce(end, Kind::end, op);
  }

  const SimTables& tables_;
  std::vector<OpState> states_;
  std::vector<OpId> next_in_queue_;
  std::vector<DeviceState> devices_;
  std::vector<Event> announced_;  // by announcement number
  EventQueue future_;             // (time, announcement number)
  std::vector<Event> now_;
  Seconds time_ = 0;
  std::size_t now_head_ = 0, now_tail_ = 0;
  std::uint32_t announced_count_ = 0;
};

}  // namespace doppler
