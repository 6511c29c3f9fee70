#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "doppler/program/expr/evaluate.h"
#include "doppler/program/lower/lower.h"

// Tensor Relational Algebra, logical level: a tensor relation is a set of (integer-tuple key, dense array).

namespace doppler::program {

using Key = std::vector<Index>;

struct Relation {
  std::vector<std::string> columns;  // names of the key's components
  std::map<Key, Dense> tuples;
};

// A key column and the values it takes, [begin, end). Relations of a plan are dense: every combination
// occurs. The values before any filter, `count` from `first`, decide on which site a tuple is, so that
// filters move nothing. So do ranks, which columns keep wherever they go: another order of columns moves nothing.
struct Column {
  std::string name;
  Index begin = 0, end = 1;
  Index first = begin, count = end - begin;
  std::uint32_t rank = 0;  // the lower, the more a site depends on it

  bool operator==(const Column&) const = default;
};

// Returns the indices of the columns by their rank, lowest first.
std::vector<std::size_t> by_rank(const std::vector<Column>& columns);

using TraId = std::uint32_t;

struct LogicalOp {
  enum class Kind : std::uint8_t {
    source,     // a stored relation
    join,       // natural join on equal column names; `kernel` on the arrays
    aggregate,  // groups by the result's columns; folds arrays element by element with `aggregate`
    rekey,      // result column i is input column from[i] plus offset[i]
    filter,     // keeps low <= key[column] < high
    transform,  // f on every element
    tile,       // cuts `dimension` of the arrays in pieces; the piece is a new last key column
    concat,     // the inverse: drops key column `column`, puts arrays together along `dimension` in key order
  };
  Kind kind = Kind::source;
  std::vector<TraId> inputs;
  std::vector<Column> columns;  // of the result
  double tuple_bytes = 0;       // of one array, on average
  Flops tuple_flops = 0;        // join: of the kernel on one tuple, on average

  std::string name;                      // source
  Einsum kernel;                         // join: labels that an array has take their sizes from it
  std::size_t rank = 0;                  // join: of the result's arrays
  Aggregate aggregate = Aggregate::sum;  // aggregate
  std::vector<std::size_t> from;         // rekey
  std::vector<Index> offset;             // rekey
  std::size_t column = 0;                // filter, concat: of the input
  Index low = 0, high = 0;               // filter
  Scalar f = Scalar::argument(0);        // transform
  std::size_t dimension = 0;             // tile, concat
  Index pieces = 1;                      // tile

  double tuples() const;
  double bytes() const { return tuples() * tuple_bytes; }
};

// Operators in topological order. The builders compute columns and sizes of the result.
class LogicalPlan {
 public:
  TraId source(std::string name, std::vector<Column> columns, double tuple_bytes);
  TraId join(std::vector<TraId> inputs, Einsum kernel, std::size_t rank, double tuple_bytes);
  TraId aggregate(TraId input, const std::vector<std::string>& group, Aggregate aggregate);
  TraId rekey(TraId input, std::vector<std::string> names, std::vector<std::size_t> from, std::vector<Index> offset);
  TraId filter(TraId input, std::size_t column, Index low, Index high);
  TraId transform(TraId input, Scalar f);
  TraId tile(TraId input, std::size_t dimension, Index pieces, std::string column);
  TraId concat(TraId input, std::size_t column, std::size_t dimension);

  TraId size() const { return static_cast<TraId>(ops_.size()); }
  const LogicalOp& op(TraId id) const { return ops_[id]; }
  // Adds the same operator on other inputs, with columns and sizes computed anew.
  TraId copy(const LogicalOp& op, std::vector<TraId> inputs);

 private:
  TraId add(LogicalOp op);
  void rank_columns(LogicalOp& join) const;
  std::vector<LogicalOp> ops_;
};

// Applies one operator to given relations.
Relation apply_operator(const LogicalOp& op, std::span<const Relation> inputs);
// Returns the value of every operator; sources go by name. Throws InputError if one is missing.
std::vector<Relation> evaluate(const LogicalPlan& plan, const std::map<std::string, Relation>& sources);

// A program's einsums, cut by a plan, as joins and aggregations of relations. Inputs are stored cut as
// their reader wants; so are the results of expressions that are no einsum (fill, select, …), which end and
// begin relations.
struct Compiled {
  LogicalPlan logical;
  std::vector<TraId> relation_of;  // by expression; meaningful for einsums and formations
  std::vector<TraId> join_of;      // by expression; meaningful for einsums
  struct Source {
    ExprId expr;
    Box box;  // per dimension
  };
  std::map<std::string, Source> sources;
};
Compiled compile(const Program& program, const Plan& plan);
// Cuts a dense array by a box; columns are the dimensions that are cut, with these names.
Relation cut_relation(const Dense& dense, const Box& box, const std::vector<std::string>& names);

// Applies the rules of the algebra wherever they match, until none does:
// neighbouring transforms, filters and rekeys fuse; filters move below rekey, transform, aggregation and
// join; linear transforms move below sums; a tile that undoes a concat, and the reverse, vanish. `roots` is
// updated.
LogicalPlan rewrite(const LogicalPlan& plan, std::vector<TraId>& roots);
// Returns the operators that no other reads.
std::vector<TraId> roots_of(const LogicalPlan& plan);

std::string to_string(const LogicalOp& op);  // one line, without inputs

}  // namespace doppler::program
