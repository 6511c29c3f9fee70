#pragma once

#include <map>
#include <string>
#include <vector>

#include "doppler/program/relational/relation.h"

// Tensor Relational Algebra, implementation level: where tuples are, and how they get there.

namespace doppler::program {

// Where the tuples of a relation are: on every site, or each on the site that a hash of some key columns
// gives. If there are no such columns, all are on site 0.
struct Distribution {
  bool everywhere = false;
  std::uint32_t columns = 0;  // as bits
  bool operator==(const Distribution&) const = default;
};
// The site of a tuple is its row-major position in the box of these columns, by their ranks, modulo sites: as even as
// can be.
unsigned site_of(const std::vector<Column>& columns, std::uint32_t chosen, const Key& key, unsigned sites);

struct PhysicalOp {
  enum class Kind : std::uint8_t {
    local,      // `logical` on what each site has
    broadcast,  // every site gets all
    shuffle,    // every tuple goes to the site of its columns
    multicast,  // every tuple goes to the sites where `reader`, a join with distribution `result`, needs it
  };
  Kind kind = Kind::local;
  TraId logical = 0;  // whose result (or part of it, for the first phase of an aggregation) this is
  std::vector<std::uint32_t> inputs;
  Distribution result;
  double moved = 0;      // bytes between sites
  bool partial = false;  // the first phase of an aggregation: `result` does not apply yet
  TraId reader = 0;      // multicast
};

// One way to compute an operator, and what the operator with all below it then costs.
struct Alternative {
  std::string text;
  double moved = 0;     // bytes
  Seconds seconds = 0;  // 0 if the plan was made for bytes
};

struct PhysicalPlan {
  std::vector<PhysicalOp> ops;
  std::vector<std::uint32_t> result_of;                // by logical operator: its finished relation
  double moved = 0;                                    // bytes between sites, in all
  Seconds seconds = 0;                                 // of all operators in turn; 0 if the plan was made for bytes
  std::vector<std::vector<Alternative>> alternatives;  // by logical operator, cheapest first
};

// Finds the plan that moves the fewest bytes, by dynamic programming over distributions, from the sources up. A join
// may broadcast any of its inputs and co-partitions the rest on columns they share; an aggregation shuffles
// first, or aggregates where tuples lie, shuffles and aggregates again, or needs no shuffle. Results that
// several operators read are fixed at their own cheapest distribution, so plans are optimal for trees and
// good for the rest. Joins and aggregations keep as many sites busy as they can. Sources may be stored
// partitioned by any columns; a source on every site is broadcast.
PhysicalPlan optimise(const LogicalPlan& plan, unsigned sites);
// Finds the plan that takes the fewest seconds on sites of these speeds, were they to work through the operators one
// after the other: the busiest site computes by the roofline of block_time(), and movements use as many links at once
// as there are sites. So here it is time that keeps sites busy. Otherwise it is as in graphs that `lower` makes:
// inputs are on every site for nothing, everything else is computed once, and a join may be partitioned by any
// columns, for the tuples that it reads go to the sites that need them. relational_plan.h chooses cuts by it.
PhysicalPlan optimise(const LogicalPlan& plan, unsigned sites, const Speeds& speeds);

// Returns, by tuple of a join's input, 1 for each site that needs it if the join is partitioned like that.
std::map<Key, std::vector<char>> sites_needing(const LogicalOp& input, const LogicalOp& join, Distribution of_join,
                                               unsigned sites);

// Returns the bytes that change their site when a relation goes from one distribution to another.
double moved_bytes(const LogicalOp& op, Distribution from, Distribution to, unsigned sites);

// Simplifies plans that others wrote (the optimiser makes nothing of the kind): of two movements in a row only
// the last is made, and none to where tuples are already.
void simplify(const LogicalPlan& logical, PhysicalPlan& plan, unsigned sites);

// Executes the plan over `sites` sites. `moved` is counted, not estimated.
struct Execution {
  std::vector<Relation> results;  // by logical operator
  double moved = 0;
};
Execution execute(const LogicalPlan& logical, const PhysicalPlan& plan, const std::map<std::string, Relation>& sources,
                  unsigned sites);

// Prints the logical plan, the physical plan, and per join and aggregation the alternatives with their costs.
std::string explain(const LogicalPlan& logical, const PhysicalPlan& plan);

}  // namespace doppler::program
