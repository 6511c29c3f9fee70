#pragma once

#include <map>
#include <span>
#include <vector>

#include "doppler/problem.h"

namespace doppler {

// What every execution of a problem, under any discipline, link model and placement, must respect; nothing
// more. All lower bounds are proved from these four facts:
//   (1) op v runs once, without interruption, for at least work[v];
//   (2) if w reads a tensor of u, it starts no earlier than u ends, and on another device no earlier than
//       u ends + delay;
//   (3) one device runs at most `device_slots` ops at a time, all devices together at most `total_slots`;
//   (4) ops with the same cluster share a device; the ends of a crossing arc never do.
// Times are the fastest over the devices the problem allows. A transfer takes at least its own time also
// where it has to queue for a channel, so (2) holds for both link models. (4) comes from colocation groups
// and pins, and from assumptions under which a bound is computed.
struct Relaxation {
  struct Arc {
    OpId op;        // the other end
    Seconds delay;  // if the ends are on different devices
    bool crossing;  // they certainly are
  };
  std::vector<Seconds> work;
  std::vector<std::uint32_t> out_begin, in_begin;
  std::vector<Arc> out, in;
  std::vector<OpId> order;  // topological
  std::vector<std::uint32_t> cluster;
  DeviceId device_count = 1;
  double device_slots = 1, total_slots = 1;

  OpId op_count() const { return static_cast<OpId>(work.size()); }
  std::span<const Arc> successors(OpId op) const {
    return {out.data() + out_begin[op], out.data() + out_begin[op + 1]};
  }
  std::span<const Arc> predecessors(OpId op) const { return {in.data() + in_begin[op], in.data() + in_begin[op + 1]}; }
  Relaxation reversed() const;  // time runs backwards: arcs turned round, the same facts
};
Relaxation relax(const Problem& problem);

// The classes of equally fast devices (Costs::device_class) that an op may go to. Ops with the same choice share one
// list of devices, so it is looked through once.
class AllowedClasses {
 public:
  explicit AllowedClasses(const Problem& problem) : problem_(problem) {}
  const std::vector<std::uint32_t>& of(OpId op);  // valid until the next call

 private:
  const Problem& problem_;
  std::map<const DeviceId*, std::vector<std::uint32_t>> classes_;  // by where the list begins
};

// A number per device, from 0; devices with the same number can be exchanged without changing the problem.
std::vector<std::uint32_t> interchangeable_devices(const Problem& problem);

// Work that has to be done between a head (earliest start) and a tail (time that must pass after its end).
struct HeadTailWork {
  Seconds head, work, tail;
};
// The least T such that the tasks can be done by `slots` equal slots, each in its window [head, T - tail], if
// work may be split and spread over slots at will. That is max over sets S of min head(S) + work(S) / slots +
// min tail(S), found by running the pending task with the largest tail at full speed (Jackson 1955; Carlier
// 1982). Reorders `tasks`.
Seconds preemptive_bound(std::span<HeadTailWork> tasks, double slots);

}  // namespace doppler
