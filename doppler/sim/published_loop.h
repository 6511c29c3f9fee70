#pragma once

#include "doppler/sim/event_queue.h"
#include "doppler/sim/sim_tables.h"

namespace doppler {

// `fifo` with free links, one slot per device, and the event order of the published simulator: events at the
// same time happen in the order in which they were announced.
//
//   ready(v)   v joins its device's queue; an idle device starts the head of its queue
//   end(x)     the device starts the next op in its queue, then announces finish(x)
//   finish(x)  announces arrive(v) for each consumer v, in edge order, after its transfer (0 on the same device)
//   arrive(v)  the last missing input announces ready(v)
//
// The same order with less work:
// - Events without delay go to a plain queue: whatever was announced for the present time before it came is older
//   than anything announced now.
// - Of the arrivals at an op only the last one matters. Which one that is, by (time, announcement number), is known
//   when the last producer finishes; only then, and only this one, becomes an event, under its old number.
// - Where nothing else is due now, what an event announces for now happens at once.
// Internal to doppler/sim.
class PublishedLoop {
 public:
  explicit PublishedLoop(const SimTables& tables)
      : tables_(tables),
        states_(tables.op_count()),
        next_in_queue_(tables.op_count()),
        devices_(tables.device_count()),
        ends_(tables.op_count()),
        arrivals_(tables.op_count()),
        now_(4 * std::size_t{tables.op_count()}) {  // each op has each kind of event once
    for (OpId op = 0; op < tables.op_count(); ++op) states_[op] = {0.0, tables.op(op).in_degree, 0};
  }

  template <typename Recorder>
  Seconds run(std::span<const DeviceId> device_of_op, Recorder& recorder) {
    return tables_.uniform() ? run<true>(device_of_op.data(), recorder) : run<false>(device_of_op.data(), recorder);
  }

 private:
  enum class Kind : std::uint32_t { ready, end, finish, arrive };
  // Fits the payload of an event queue: ids stay below 2^30.
  struct Event {
    std::uint32_t packed;
    Event() = default;
    explicit Event(std::uint32_t bits) : packed(bits) {}
    Event(Kind kind, OpId op) : packed(op << 2 | static_cast<std::uint32_t>(kind)) {}
    Kind kind() const { return static_cast<Kind>(packed & 3); }
    OpId op() const { return packed >> 2; }
  };
  struct State {
    Seconds ready;               // last arrival announced so far
    std::uint32_t pending;       // producers that have not finished
    std::uint32_t announcement;  // number of that arrival
  };
  struct DeviceState {
    OpId head, tail;
    bool queue_empty, busy;
  };

  void announce_now(Event event) { now_[now_tail_++] = event; }
  bool nothing_due() const { return now_head_ == now_tail_; }

  template <bool Uniform, typename Recorder>
  Seconds run(const DeviceId* device_of_op, Recorder& recorder) {
    time_ = 0;
    now_head_ = now_tail_ = announced_ = 0;
    std::fill(devices_.begin(), devices_.end(), DeviceState{0, 0, true, false});
    for (const OpId op : tables_.sources()) announce_now({Kind::ready, op});
    while (true) {
      while (!nothing_due()) happen<Uniform>(now_[now_head_++], device_of_op, recorder);
      if (ends_.empty() && arrivals_.empty()) return time_;
      now_head_ = now_tail_ = 0;
      time_ = std::min(ends_.top_time(), arrivals_.top_time());
      // Mostly a single event is due, and needs no line.
      if (arrivals_.top_time() > time_) {
        const Event event(ends_.pop().payload);
        if (ends_.top_time() > time_) {
          end<Uniform>(event.op(), device_of_op, recorder);
          continue;
        }
        announce_now(event);
      } else if (ends_.top_time() > time_) {
        const Event event(arrivals_.pop().payload);
        if (arrivals_.top_time() > time_) {
          ready<Uniform>(event.op(), device_of_op[event.op()], recorder);
          continue;
        }
        announce_now(event);
      }
      collect_due();
    }
  }

  // Lines up what is due now, by announcement number.
  void collect_due() {
    while (ends_.top_time() == time_) {
      while (arrivals_.top_time() == time_ && arrivals_.top_id() < ends_.top_id())
        announce_now(Event(arrivals_.pop().payload));
      announce_now(Event(ends_.pop().payload));
    }
    while (arrivals_.top_time() == time_) announce_now(Event(arrivals_.pop().payload));
  }

  template <bool Uniform, typename Recorder>
  [[gnu::always_inline]] void happen(Event event, const DeviceId* device_of_op, Recorder& recorder) {
    const OpId op = event.op();
    if (event.kind() == Kind::ready) {
      ready<Uniform>(op, device_of_op[op], recorder);
    } else if (event.kind() == Kind::end) {
      end<Uniform>(op, device_of_op, recorder);
    } else if (event.kind() == Kind::arrive) {
      announce_now({Kind::ready, op});
    } else {
      finish<Uniform>(op, device_of_op, recorder);
    }
  }

  template <bool Uniform, typename Recorder>
  [[gnu::always_inline]] void end(OpId op, const DeviceId* device_of_op, Recorder& recorder) {
    DeviceState& device = devices_[device_of_op[op]];
    device.busy = false;
    if (!device.queue_empty) start<Uniform>(dequeue(device), device_of_op[op], recorder);
    if (nothing_due()) {
      finish<Uniform>(op, device_of_op, recorder);
    } else {
      announce_now({Kind::finish, op});
    }
  }

  template <bool Uniform, typename Recorder>
  [[gnu::always_inline]] void ready(OpId op, DeviceId id, Recorder& recorder) {
    DeviceState& device = devices_[id];
    if (!device.busy) return start<Uniform>(op, id, recorder);  // an idle device has an empty queue
    (device.queue_empty ? device.head : next_in_queue_[device.tail]) = op;
    device.tail = op;
    device.queue_empty = false;
  }

  OpId dequeue(DeviceState& device) {
    const OpId op = device.head;
    device.queue_empty = op == device.tail;
    device.head = next_in_queue_[op];
    return op;
  }

  template <bool Uniform, typename Recorder>
  void start(OpId op, DeviceId device, Recorder& recorder) {
    devices_[device].busy = true;
    const Seconds end = time_ + tables_.op_time<Uniform>(op, device);
    recorder.execution(op, device, 0, states_[op].ready, time_, end);
    states_[op] = {0.0, tables_.op(op).in_degree, 0};
    if (end == time_) return announce_now({Kind::end, op});
    ends_.push(end, announced_++, Event(Kind::end, op).packed);
  }

  template <bool Uniform, typename Recorder>
  void finish(OpId op, const DeviceId* device_of_op, Recorder& recorder) {
    const DeviceId device = device_of_op[op];
    const Kind at_once = nothing_due() ? Kind::ready : Kind::arrive;
    for (const SimTables::Edge& edge : tables_.edges(op)) {
      const DeviceId target = device_of_op[edge.consumer];
      Seconds arrival = time_;
      if (target != device) {
        arrival += tables_.transfer_time<Uniform>(edge, device, target);
        recorder.transfer(edge.tensor, device, target, 0, time_, time_, arrival);
      }
      State& consumer = states_[edge.consumer];
      if (arrival >= consumer.ready) {
        consumer.ready = arrival;
        consumer.announcement = announced_;
      }
      ++announced_;
      if (--consumer.pending > 0) continue;
      if (consumer.ready == time_) {
        announce_now({at_once, edge.consumer});
      } else {
        arrivals_.push(consumer.ready, consumer.announcement, Event(Kind::arrive, edge.consumer).packed);
      }
    }
  }

  const SimTables& tables_;
  std::vector<State> states_;
  std::vector<OpId> next_in_queue_;
  std::vector<DeviceState> devices_;
  // By (time, announcement number). Two queues, because ends are few and near while arrivals are many and
  // far.
  EventQueue ends_, arrivals_;
  std::vector<Event> now_;
  Seconds time_ = 0;
  std::size_t now_head_ = 0, now_tail_ = 0;
  std::uint32_t announced_ = 0;
};

}  // namespace doppler
