#pragma once

// An answer: a device for every op, in memory and as a file that says who made it.
//
//   doppler::Placement placement{.device_of_op = {0, 0, 1}};
//   std::string text = doppler::placement_to_json(placement, doppler::provenance_of(problem, "mine"));
//   doppler::PlacementFile read = doppler::parse_placement("mine.json", text);   // read.placement == placement
//
// Limits. A file knows devices by number, so it belongs to a machine with as many of them in the same order.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// Why an op is where it is.
enum class Cause : std::uint8_t {
  chosen,           // the method's own rule, nothing more specific
  pinned,           // the user said so
  colocated,        // another op of its group is there
  only_device,      // nothing else can run it
  earliest_start,   // list scheduling by start time
  earliest_finish,  // list scheduling by finish time
  critical_path,    // on the critical path, which shares a device
  partition,        // a block of a graph partition
  fill_order,       // devices filled one after the other
  memory,           // the preferred device was full
  search,           // a search kept this move
  policy,           // a learned policy chose it
  makespan,         // on any other device the whole takes longer (why.h)
  less_moved,       // another device is as fast, but more bytes move
  indifferent,      // another device does as well
};
std::string_view to_string(Cause cause);

// A device for every op and, for the disciplines that want one, a priority.
struct Placement {
  std::vector<DeviceId> device_of_op = {};
  // The rank of each op, a permutation of 0 … n-1, smaller first. Where it is empty the simulator ranks ops by b-level.
  std::vector<std::uint32_t> priority = {};
  std::vector<Cause> cause_of_op = {};  // empty where nobody said why

  bool operator==(const Placement&) const = default;
};

// Ranks arbitrary numbers: the smallest gets 0, ties go by op id.
std::vector<std::uint32_t> ranks_of(const std::vector<double>& values);
// Does the inverse: order[i] gets rank i.
std::vector<std::uint32_t> ranks_from_order(const std::vector<OpId>& order);

// Who made a placement and what it is worth: what placement files carry beside the assignment.
// Nothing in it depends on the clock: the same seed and evaluations give the same bytes.
struct Provenance {
  std::string method;
  std::string winner;  // who found it, where the method asks others (auto, learned methods); otherwise equal to method
  std::string version, budget;  // of the program; "10 s" or "1000 evaluations"
  std::uint64_t seed = 0;
  std::uint64_t evaluations = 0;  // simulations it used
  std::string graph, machine, discipline, links;
  std::string fingerprint = {};  // of the graph's ops and edges (Graph::fingerprint()); empty: unknown
  std::uint64_t shard = 0;       // a model that was cut: in at most how many blocks per op
  Seconds makespan = 0, lower_bound = 0;

  bool operator==(const Provenance&) const = default;
};

std::string placement_to_json(const Placement& placement, const Provenance& provenance);

// A placement file as it was written.
struct PlacementFile {
  Placement placement;
  Provenance made;
};
// Throws InputError if the text is no placement file.
PlacementFile parse_placement(const std::string& where, std::string_view json_text);
// Throws InputError unless there is one entry per op, and every device is below `device_count`.
void check_size(const std::string& where, const Placement& placement, OpId op_count, DeviceId device_count);

}  // namespace doppler
