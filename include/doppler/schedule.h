#pragma once

// A run for drawing: who ran what when, by columns, with memory over time, idle time and its causes, and the chain of
// steps that explains the makespan. Results carry it where somebody asked for it (`--timeline`, `--html`).
//
//   const doppler::Timeline timeline = doppler::ExactObjective(problem).simulate(placement);   // objective.h
//   doppler::SimulationResult result = doppler::simulate(problem, placement, timeline);        // simulate.h
//   result.schedule = doppler::schedule_of(problem, placement, timeline);                       // why.h
//   std::ofstream("report.html") << doppler::report_page("mine", {{"mine", result}});          // report.h
//
// Limits. Times are whole ticks of 1/10^8 of the makespan, so that 10^5 ops take some 10 MB as text.

#include <cstdint>
#include <string>
#include <vector>

#include "doppler/units.h"

namespace doppler {

struct Schedule {
  using Ticks = std::vector<std::uint32_t>;
  using Column = std::vector<std::uint32_t>;

  struct DeviceLane {
    std::string name;
    Bytes memory = 0;  // 0: unlimited
    unsigned slots = 1;
    Ticks memory_times = {};  // when the bytes in use change, and to what
    std::vector<Bytes> memory_bytes = {};

    bool operator==(const DeviceLane&) const = default;
  };
  struct Ops {  // op i is entry i of every column
    std::vector<std::string> name = {};
    Column kind = {}, device = {}, slot = {};
    Ticks start = {}, takes = {}, waited = {};  // waited: since its last input was there
    Column cause = {};                          // empty if nobody said why
    // The producers of what op i reads: input[input_begin[i]] … input[input_begin[i + 1] - 1].
    Column input_begin = {}, input = {};

    bool operator==(const Ops&) const = default;
  };
  struct Transfers {  // by start
    Column producer = {}, src = {}, dst = {};
    // later: since the start of the entry before, from 0; waited: since the producer ended. Small numbers are short.
    Ticks later = {}, takes = {}, waited = {};
    std::vector<Bytes> bytes = {};

    bool operator==(const Transfers&) const = default;
  };
  struct Gaps {  // idle time
    Column device = {}, slot = {};
    Ticks start = {}, end = {};
    Column waits = {};

    bool operator==(const Gaps&) const = default;
  };
  struct Chain {
    Column transfer = {}, id = {}, waits = {};  // transfer 1: `id` is an entry of the transfers, else an op

    bool operator==(const Chain&) const = default;
  };

  // What the whole run would take with an op elsewhere, simulated: makespan[d][i] ticks if op[i] were on device d, with
  // the ops that must stay with it; kCannotRun where it cannot. All ops of small graphs, of larger ones those of the
  // chain, of the largest none; none either where the run was measured.
  struct Elsewhere {
    Column op = {};
    std::vector<Ticks> makespan = {};

    bool operator==(const Elsewhere&) const = default;
  };

  bool unitless = false, measured = false;
  Seconds makespan = 0, tick = 0;  // a tick in seconds, or in the graph's unit
  std::vector<DeviceLane> devices = {};
  std::vector<std::string> kinds = {}, causes = {}, waits = {};  // what columns of numbers stand for
  // What each op takes on a device of each type, in ticks; kCannotRun where it cannot. Empty if there is one type.
  static constexpr std::uint32_t kCannotRun = 0xffffffff;
  std::vector<std::string> types = {};
  Column type_of_device = {};
  std::vector<Ticks> time_on = {};
  Ops ops = {};
  Transfers transfers = {};
  Gaps gaps = {};
  Chain chain = {};
  Elsewhere elsewhere = {};

  bool operator==(const Schedule&) const = default;
};

}  // namespace doppler
