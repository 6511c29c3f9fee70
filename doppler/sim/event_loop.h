#pragma once

#include <algorithm>
#include <functional>

#include "doppler/base/error.h"
#include "doppler/sim/channel_clock.h"
#include "doppler/sim/event_queue.h"
#include "doppler/sim/rank_set.h"
#include "doppler/sim/sim_tables.h"

namespace doppler {

// Everything that ListLoop cannot do: ready queues ordered by rank (`priority`, and `random` as a
// priority drawn by seed), links with a limited number of channels, and receivers that copy, under any discipline.
//
// At each instant all ends and arrivals happen first; then every device with a free slot takes ops from its
// ready queue, and what takes no time ends at the same instant, again and again until nothing more happens. Under
// `fifo` only then does one op join its queue, the one with the smallest id of those that became ready at this
// instant: an op that a zero-time op makes ready still goes by id, as in ListLoop. A transfer takes the first free
// channel of its link when its producer ends (ties: producer id, tensor id, destination in the order of consumers),
// so its arrival is known at once and an op needs one event to become ready. Where receivers copy, a copy is a task
// of its destination like an op: it waits for a slot behind those that were asked for before, and goes before all
// ready ops. docs/simulator.md states these rules for users. Internal to doppler/sim.
class EventLoop {
 public:
  explicit EventLoop(const SimTables& tables)
      : tables_(tables),
        discipline_(tables.problem().rules().discipline),
        receiver_copies_(tables.problem().rules().links == Links::receiver),
        channels_(tables),
        states_(initial_states(tables)),
        clock_(tables),
        idle_slots_(tables.device_count()),
        ends_(tables.op_count() + (receiver_copies_ ? tables.edge_count() : 0)),
        arrivals_(tables.op_count()),
        order_(tables.op_count()),
        arrival_at_(tables.device_count()),
        last_moved_(tables.device_count()) {
    const DeviceId devices = tables.device_count();
    touched_.resize(devices + 1);  // one more: touch() writes before it counts
    is_touched_.assign(devices, false);
    newly_ready_.reserve(tables.op_count());
    if (receiver_copies_) {
      copies_.reserve(tables.edge_count());
      next_copy_.resize(tables.edge_count());
      copy_queues_.resize(devices);
    }
    if (discipline_ == Discipline::fifo) {
      next_in_queue_.resize(tables.op_count());
      queues_.resize(devices);
    } else if (discipline_ == Discipline::ordered) {
      sequence_.resize(tables.op_count());
      sequence_begin_.resize(devices + 1);
      sequence_next_.resize(devices);
      is_ready_.assign(tables.op_count(), false);
    } else {
      ready_ranks_.assign(devices, RankSet(tables.op_count()));
    }
  }

  // `rank` is read by priority, random and ordered.
  template <typename Recorder>
  Seconds run(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> rank, Recorder& recorder) {
    switch (discipline_) {
      case Discipline::fifo:
        return dispatch<Queue::fifo>(device_of_op.data(), rank.data(), recorder);
      case Discipline::ordered:
        return dispatch<Queue::sequence>(device_of_op.data(), rank.data(), recorder);
      case Discipline::priority:
      case Discipline::random:
        return dispatch<Queue::ranked>(device_of_op.data(), rank.data(), recorder);
    }
    throw InternalError("unknown discipline");
  }

 private:
  enum class Queue : std::uint8_t { fifo, sequence, ranked };
  struct FifoQueue {
    std::uint32_t head, tail;
    bool empty;

    void push(std::uint32_t id, std::vector<std::uint32_t>& next) {
      (empty ? head : next[tail]) = id;
      tail = id;
      empty = false;
    }
    std::uint32_t pop(const std::vector<std::uint32_t>& next) {
      const std::uint32_t id = head;
      empty = id == tail;
      head = next[id];
      return id;
    }
  };
  struct Copy {
    OpId producer;
    TensorId tensor;
    DeviceId src, dst;
    Seconds queued, duration;
  };

  void reset(const DeviceId* device_of_op, const std::uint32_t* rank) {
    clock_.clear();
    for (DeviceId id = 0; id < tables_.device_count(); ++id) idle_slots_[id] = tables_.slots(id);
    channels_.clear();
    std::fill(last_moved_.begin(), last_moved_.end(), std::numeric_limits<TensorId>::max());
    std::fill(queues_.begin(), queues_.end(), FifoQueue{0, 0, true});
    copies_.clear();
    std::fill(copy_queues_.begin(), copy_queues_.end(), FifoQueue{0, 0, true});
    if (discipline_ == Discipline::fifo) return;
    for (OpId op = 0; op < tables_.op_count(); ++op) order_[rank[op]] = op;
    if (discipline_ == Discipline::ordered) line_up(device_of_op, rank);
  }

  // Each device's ops in rank order; an op of which a producer comes later waits for it (as in the list
  // engine).
  void line_up(const DeviceId* device_of_op, const std::uint32_t* rank) {
    std::fill(sequence_begin_.begin(), sequence_begin_.end(), 0);
    for (OpId op = 0; op < tables_.op_count(); ++op) ++sequence_begin_[device_of_op[op] + 1];
    for (std::size_t i = 1; i < sequence_begin_.size(); ++i) sequence_begin_[i] += sequence_begin_[i - 1];
    std::copy(sequence_begin_.begin(), sequence_begin_.end() - 1, sequence_next_.begin());
    const auto take = [&](OpId op, std::uint32_t position) {
      sequence_[sequence_next_[device_of_op[op]]++] = op;
      is_ready_[op] = false;
      states_[op].pending = tables_.op(op).in_degree;
      for (const SimTables::Edge& edge : tables_.edges(op))
        if (--states_[edge.consumer].pending == 0 && rank[edge.consumer] < position)
          arrivals_.push(0.0, rank[edge.consumer]);
    };
    std::uint32_t position = 0;
    while (position < tables_.op_count()) {
      const OpId op = order_[position++];
      if (states_[op].pending == 0) take(op, position);
      while (!arrivals_.empty()) take(order_[arrivals_.pop().id], position);
    }
    std::copy(sequence_begin_.begin(), sequence_begin_.end() - 1, sequence_next_.begin());
  }

  template <Queue Q, typename Recorder>
  Seconds dispatch(const DeviceId* device_of_op, const std::uint32_t* rank, Recorder& recorder) {
    reset(device_of_op, rank);
    return tables_.uniform() ? run<Q, true>(device_of_op, rank, recorder) : run<Q, false>(device_of_op, rank, recorder);
  }

  template <Queue Q, bool Uniform, typename Recorder>
  Seconds run(const DeviceId* device_of_op, const std::uint32_t* rank, Recorder& recorder) {
    Seconds now = 0;
    for (const OpId op : tables_.sources()) make_ready<Q>(op, device_of_op[op], rank);
    while (true) {
      // What waits already would start first, which makes no difference unless it ends at this instant too.
      if constexpr (Q == Queue::fifo)
        if (!newly_ready_.empty() && instant_ops_queued_ == 0 && !receiver_copies_)
          queue_newly_ready<Uniform>(now, device_of_op);
      for (std::size_t i = 0; i < touched_count_; ++i) {
        const DeviceId device = touched_[i];
        is_touched_[device] = false;
        while (receiver_copies_ && idle_slots_[device] > 0 && !copy_queues_[device].empty)
          start_copy(copy_queues_[device].pop(next_copy_), now, recorder);
        while (idle_slots_[device] > 0 && has_next<Q>(device))
          start<Q, Uniform>(take_next<Q>(device), device, now, recorder);
      }
      touched_count_ = 0;
      if constexpr (Q == Queue::fifo)
        if (!newly_ready_.empty() && ends_.top_time() != now) {
          queue_newly_ready<Uniform>(now, device_of_op);
          continue;
        }
      if (ends_.empty() && arrivals_.empty()) return now;
      now = std::min(ends_.top_time(), arrivals_.top_time());
      while (ends_.top_time() == now) {
        const std::uint32_t id = ends_.pop().id;
        if (id < tables_.op_count())
          finish<Q, Uniform>(id, now, device_of_op, rank, recorder);
        else
          finish_copy<Q>(copies_[id - tables_.op_count()], now, device_of_op, rank);
      }
      while (arrivals_.top_time() == now) {
        const OpId op = arrivals_.pop().id;
        make_ready<Q>(op, device_of_op[op], rank);
      }
    }
  }

  void touch(DeviceId device) {
    touched_[touched_count_] = device;
    touched_count_ += !is_touched_[device];
    is_touched_[device] = true;
  }

  template <Queue Q>
  void make_ready(OpId op, DeviceId device, const std::uint32_t* rank) {
    if constexpr (Q == Queue::fifo) {
      newly_ready_.push_back(op);
      std::push_heap(newly_ready_.begin(), newly_ready_.end(), std::greater<>());
      return;
    }
    touch(device);
    if constexpr (Q == Queue::sequence) is_ready_[op] = true;
    if constexpr (Q == Queue::ranked) ready_ranks_[device].insert(rank[op]);
  }

  // Of the ops that became ready at this instant, the one with the smallest id joins its queue. If it cannot end at the
  // same instant, nothing else becomes ready by it, and the next may join too.
  template <bool Uniform>
  void queue_newly_ready(Seconds now, const DeviceId* device_of_op) {
    Seconds time;
    do {
      std::pop_heap(newly_ready_.begin(), newly_ready_.end(), std::greater<>());
      const OpId op = newly_ready_.back();
      const DeviceId device = device_of_op[op];
      newly_ready_.pop_back();
      queues_[device].push(op, next_in_queue_);
      touch(device);
      time = tables_.op_time<Uniform>(op, device);
      instant_ops_queued_ += time == 0;
    } while (now + time > now && !newly_ready_.empty());
  }

  template <Queue Q>
  bool has_next(DeviceId device) const {
    if constexpr (Q == Queue::fifo) return !queues_[device].empty;
    if constexpr (Q == Queue::ranked) return !ready_ranks_[device].empty();
    const std::uint32_t next = sequence_next_[device];
    return next < sequence_begin_[device + 1] && is_ready_[sequence_[next]];
  }

  template <Queue Q>
  OpId take_next(DeviceId device) {
    if constexpr (Q == Queue::fifo) return queues_[device].pop(next_in_queue_);
    if constexpr (Q == Queue::ranked) return order_[ready_ranks_[device].pop_smallest()];
    return sequence_[sequence_next_[device]++];
  }

  template <Queue Q, bool Uniform, typename Recorder>
  void start(OpId op, DeviceId device, Seconds now, Recorder& recorder) {
    const Seconds time = tables_.op_time<Uniform>(op, device), end = now + time;
    if constexpr (Q == Queue::fifo) instant_ops_queued_ -= time == 0;
    --idle_slots_[device];
    if constexpr (Recorder::kRecords)  // only a timeline wants to know which slot it is
      recorder.execution(op, device, take_slot(device, end), states_[op].ready, now, end);
    states_[op] = {0.0, tables_.op(op).in_degree};
    ends_.push(end, op);
  }

  std::uint32_t take_slot(DeviceId device, Seconds until) {
    const std::uint32_t slot = clock_.first_free(device);
    clock_.free_at(device, slot) = until;
    return slot;
  }

  template <typename Recorder>
  void start_copy(std::uint32_t index, Seconds now, Recorder& recorder) {
    const Copy& copy = copies_[index];
    const Seconds end = now + copy.duration;
    --idle_slots_[copy.dst];
    if constexpr (Recorder::kRecords) {
      recorder.copying(copy.producer, copy.dst, take_slot(copy.dst, end));
      recorder.transfer(copy.tensor, copy.src, copy.dst, 0, copy.queued, now, end);
    }
    ends_.push(end, tables_.op_count() + index);
  }

  template <Queue Q>
  void finish_copy(const Copy& copy, Seconds now, const DeviceId* device_of_op, const std::uint32_t* rank) {
    ++idle_slots_[copy.dst];
    touch(copy.dst);
    for (const SimTables::Edge& edge : tables_.edges(copy.producer)) {
      if (edge.tensor != copy.tensor || device_of_op[edge.consumer] != copy.dst) continue;
      states_[edge.consumer].ready = now;
      if (--states_[edge.consumer].pending == 0) make_ready<Q>(edge.consumer, copy.dst, rank);
    }
  }

  template <Queue Q, bool Uniform, typename Recorder>
  void finish(OpId op, Seconds now, const DeviceId* device_of_op, const std::uint32_t* rank, Recorder& recorder) {
    const DeviceId device = device_of_op[op];
    ++idle_slots_[device];
    touch(device);
    for (const SimTables::Edge& edge : tables_.edges(op)) {
      const DeviceId target = device_of_op[edge.consumer];
      if (receiver_copies_ && target != device) {
        ask_for_copy<Uniform>(op, edge, device, target, now);
        continue;
      }
      const Seconds arrival = target == device ? now : move<Uniform>(edge, device, target, now, recorder);
      OpState& consumer = states_[edge.consumer];
      consumer.ready = std::max(consumer.ready, arrival);
      if (--consumer.pending > 0) continue;
      if (consumer.ready == now) {
        make_ready<Q>(edge.consumer, target, rank);
      } else {
        arrivals_.push(consumer.ready, edge.consumer);
      }
    }
  }

  template <bool Uniform>
  void ask_for_copy(OpId producer, const SimTables::Edge& edge, DeviceId src, DeviceId dst, Seconds now) {
    if (last_moved_[dst] == edge.tensor) return;
    last_moved_[dst] = edge.tensor;
    copy_queues_[dst].push(static_cast<std::uint32_t>(copies_.size()), next_copy_);
    copies_.push_back({producer, edge.tensor, src, dst, now, tables_.transfer_time<Uniform>(edge, src, dst)});
    touch(dst);
  }

  // When the tensor is on `dst`; starts the transfer if this is its first consumer there.
  template <bool Uniform, typename Recorder>
  Seconds move(const SimTables::Edge& edge, DeviceId src, DeviceId dst, Seconds now, Recorder& recorder) {
    if (last_moved_[dst] == edge.tensor) return arrival_at_[dst];
    last_moved_[dst] = edge.tensor;
    const auto grant = channels_.transfer(src, dst, now, tables_.transfer_time<Uniform>(edge, src, dst));
    recorder.transfer(edge.tensor, src, dst, grant.channel, now, grant.start, grant.end);
    return arrival_at_[dst] = grant.end;
  }

  const SimTables& tables_;
  const Discipline discipline_;
  const bool receiver_copies_;
  ChannelClock channels_;
  std::vector<OpState> states_;
  SlotClock clock_;
  std::vector<unsigned> idle_slots_;
  // Two queues, because ends are few and near while arrivals are many and far: both stay almost sorted by
  // themselves.
  EventQueue ends_;                       // ops that run
  EventQueue arrivals_;                   // ops whose last input is on its way
  std::vector<OpId> newly_ready_;         // fifo: a heap, smallest id first
  std::uint32_t instant_ops_queued_ = 0;  // fifo: ops in queues that take no time
  std::vector<DeviceId> touched_;         // devices that may start something now
  std::size_t touched_count_ = 0;
  std::vector<char> is_touched_;
  std::vector<OpId> order_;  // op by rank
  // priority, random
  std::vector<RankSet> ready_ranks_;
  // fifo
  std::vector<FifoQueue> queues_;
  std::vector<OpId> next_in_queue_;
  // ordered
  std::vector<OpId> sequence_;
  std::vector<std::uint32_t> sequence_begin_, sequence_next_;
  std::vector<char> is_ready_;
  // transfers
  std::vector<Seconds> arrival_at_;   // per destination, of the tensor in last_moved_
  std::vector<TensorId> last_moved_;  // per destination
  // copies by receivers
  std::vector<Copy> copies_;            // all that were asked for, as they were
  std::vector<FifoQueue> copy_queues_;  // by destination: not begun
  std::vector<std::uint32_t> next_copy_;
};

}  // namespace doppler
