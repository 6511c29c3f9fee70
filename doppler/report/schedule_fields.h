#pragma once

#include "doppler/report/is.h"
#include "doppler/schedule.h"

// The fields of a schedule (see json.cpp). Internal to doppler/report.
namespace doppler {

template <typename Archive, Is<Schedule::DeviceLane> T>
void fields(Archive& a, T& lane) {
  a("name", lane.name);
  a("memory", lane.memory);
  a("slots", lane.slots);
  a("memory_times", lane.memory_times);
  a("memory_bytes", lane.memory_bytes);
}
template <typename Archive, Is<Schedule::Ops> T>
void fields(Archive& a, T& ops) {
  a("name", ops.name);
  a("kind", ops.kind);
  a("device", ops.device);
  a("slot", ops.slot);
  a("start", ops.start);
  a("takes", ops.takes);
  a("waited", ops.waited);
  a("cause", ops.cause);
  a("input_begin", ops.input_begin);
  a("input", ops.input);
}
template <typename Archive, Is<Schedule::Transfers> T>
void fields(Archive& a, T& transfers) {
  a("producer", transfers.producer);
  a("src", transfers.src);
  a("dst", transfers.dst);
  a("later", transfers.later);
  a("takes", transfers.takes);
  a("waited", transfers.waited);
  a("bytes", transfers.bytes);
}
template <typename Archive, Is<Schedule::Gaps> T>
void fields(Archive& a, T& gaps) {
  a("device", gaps.device);
  a("slot", gaps.slot);
  a("start", gaps.start);
  a("end", gaps.end);
  a("waits", gaps.waits);
}
template <typename Archive, Is<Schedule::Chain> T>
void fields(Archive& a, T& chain) {
  a("transfer", chain.transfer);
  a("id", chain.id);
  a("waits", chain.waits);
}
template <typename Archive, Is<Schedule::Elsewhere> T>
void fields(Archive& a, T& elsewhere) {
  a("op", elsewhere.op);
  a("makespan", elsewhere.makespan);
}
template <typename Archive, Is<Schedule> T>
void fields(Archive& a, T& schedule) {
  a.unit("unit", schedule.unitless);
  a("measured", schedule.measured);
  a("makespan", schedule.makespan);
  a("tick", schedule.tick);
  a("devices", schedule.devices);
  a("kinds", schedule.kinds);
  a("causes", schedule.causes);
  a("waits", schedule.waits);
  a("types", schedule.types);
  a("type_of_device", schedule.type_of_device);
  a("time_on", schedule.time_on);
  a("ops", schedule.ops);
  a("transfers", schedule.transfers);
  a("gaps", schedule.gaps);
  a("chain", schedule.chain);
  a("elsewhere", schedule.elsewhere);
}

}  // namespace doppler
