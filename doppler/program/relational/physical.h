#pragma once

#include <map>
#include <string>
#include <vector>

#include "doppler/program/relational/relation.h"

// Tensor Relational Algebra, implementation level: where tuples are, and how they get there.

namespace doppler::program {

// Where the tuples of a relation are: on every site, or each on the site that a hash of some key columns
// gives. No columns: all on site 0.
struct Distribution {
  bool everywhere = false;
  std::uint32_t columns = 0;  // as bits
  bool operator==(const Distribution&) const = default;
};
// Row-major position in the box of these columns, modulo sites: as even as it can be.
unsigned site_of(const std::vector<Column>& columns, std::uint32_t chosen, const Key& key, unsigned sites);

struct PhysicalOp {
  enum class Kind : std::uint8_t {
    local,      // `logical` on what each site has
    broadcast,  // every site gets all
    shuffle,    // every tuple goes to the site of its columns
  };
  Kind kind = Kind::local;
  TraId logical = 0;  // whose result (or part of it, for the first phase of an aggregation) this is
  std::vector<std::uint32_t> inputs;
  Distribution result;
  double moved = 0;      // bytes between sites
  bool partial = false;  // the first phase of an aggregation: `result` does not apply yet
};

// One way to compute an operator, and what the operator with all below it then costs.
struct Alternative {
  std::string text;
  double moved = 0;
};

struct PhysicalPlan {
  std::vector<PhysicalOp> ops;
  std::vector<std::uint32_t> result_of;                // by logical operator: its finished relation
  double moved = 0;                                    // bytes between sites, in all
  std::vector<std::vector<Alternative>> alternatives;  // by logical operator, cheapest first
};

// The plan that moves the fewest bytes: dynamic programming over distributions, from the sources up. A join
// may broadcast any of its inputs and co-partitions the rest on columns they share; an aggregation shuffles
// first, or aggregates where tuples lie, shuffles and aggregates again, or needs no shuffle. Results that
// several operators read are fixed at their own cheapest distribution, so plans are optimal for trees and
// good for the rest. Joins and aggregations keep as many sites busy as they can. Sources may be stored
// partitioned by any columns; a source on every site is broadcast.
PhysicalPlan optimise(const LogicalPlan& plan, unsigned sites);

// Bytes that change their site when a relation goes from one distribution to another.
double moved_bytes(const LogicalOp& op, Distribution from, Distribution to, unsigned sites);

// Rules for plans that others wrote (the optimiser makes nothing of the kind): of two movements in a row only
// the last is made, and none to where tuples are already.
void simplify(const LogicalPlan& logical, PhysicalPlan& plan, unsigned sites);

// Executes the plan over `sites` sites. `moved` is counted, not estimated.
struct Execution {
  std::vector<Relation> results;  // by logical operator
  double moved = 0;
};
Execution execute(const LogicalPlan& logical, const PhysicalPlan& plan, const std::map<std::string, Relation>& sources,
                  unsigned sites);

// The logical plan, the physical plan, and per join and aggregation the alternatives with their costs.
std::string explain(const LogicalPlan& logical, const PhysicalPlan& plan);

}  // namespace doppler::program
