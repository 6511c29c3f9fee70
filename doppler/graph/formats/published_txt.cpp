#include "doppler/graph/formats/published_txt.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <tuple>

#include "doppler/base/error.h"
#include "doppler/graph/formats/text_reader.h"

namespace doppler {
namespace {

constexpr std::string_view kTxtSeparators = ", \t\r";

struct FileEdge {
  std::uint64_t src, dst;
  bool operator==(const FileEdge&) const = default;
};

// Each of these files has one wrong number in its list of targets; its twin with op kinds (gdp_…) is intact.
// Sizes and edge together single the file out.
struct Damage {
  std::size_t ops, edges;
  FileEdge found, intended;
};
constexpr std::array<Damage, 3> kKnownDamage = {{
    {76, 80, {1, 6}, {1, 16}},     // chain_mm
    {182, 234, {0, 7}, {0, 18}},   // transformer_block
    {229, 284, {0, 38}, {0, 97}},  // full_transformer_layer
}};

std::vector<std::uint64_t> read_integers(formats::TextLine line) {
  std::vector<std::uint64_t> values;
  while (const auto value = line.next_integer()) values.push_back(*value);
  return values;
}

std::vector<FileEdge> read_edges(const std::string& where, formats::TextReader& reader) {
  const auto sources = read_integers(reader.next_line("the sources of the edges"));
  const auto targets = read_integers(reader.next_line("the targets of the edges"));
  if (sources.size() != targets.size())
    throw InputError(fmt::format("{}: {} edge sources on line 3 and {} targets on line 4; required equally many", where,
                                 sources.size(), targets.size()));
  std::vector<FileEdge> edges;
  edges.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) edges.push_back({sources[i], targets[i]});
  return edges;
}

// Adds the ops; returns their communication costs.
std::vector<double> read_rows(formats::TextReader& reader, GraphBuilder& builder) {
  std::vector<double> communication;
  while (reader.skip_to_content()) {
    formats::TextLine row = reader.next_line("an op");
    OpSpec op;
    op.name = std::to_string(builder.op_count());
    op.explicit_times["*"] = row.number("a computation cost");
    communication.push_back(row.number("a communication cost"));
    if (const auto kind = row.next_field()) {
      const bool printable = std::all_of(kind->begin(), kind->end(), [](char c) { return c > ' ' && c <= '~'; });
      if (!printable)
        throw InputError(fmt::format("{}: unprintable characters in the kind; required a word", row.where()));
      op.kind = *kind;
    }
    row.expect_end();
    builder.add_op(std::move(op));
  }
  return communication;
}

void check_edges(const std::string& where, const std::vector<FileEdge>& edges, OpId ops) {
  for (const auto& [src, dst] : edges)
    if (src >= ops || dst >= ops)
      throw InputError(fmt::format("{}: edge {} -> {}; required ops below {}", where, src, dst, ops));
}

void handle_damage(const std::string& where, std::vector<FileEdge>& edges, OpId ops, bool repair,
                   std::vector<std::string>& warnings) {
  for (const Damage& damage : kKnownDamage) {
    if (damage.ops != ops || damage.edges != edges.size()) continue;
    const auto edge = std::find(edges.begin(), edges.end(), damage.found);
    if (edge == edges.end()) continue;
    warnings.push_back(fmt::format("{}: edge {} -> {} of this published graph is damaged, {} {} -> {}{}", where,
                                   damage.found.src, damage.found.dst, repair ? "repaired to" : "meant is",
                                   damage.intended.src, damage.intended.dst,
                                   repair ? "" : "; read as it is, --repair fixes it"));
    if (repair) *edge = damage.intended;
  }
}

// One line for any number of edges with the same defect.
void warn(const std::string& where, const std::vector<FileEdge>& edges, std::string_view defect,
          std::vector<std::string>& warnings) {
  if (edges.empty()) return;
  const std::string others = edges.size() > 1 ? fmt::format(" and {} more", edges.size() - 1) : "";
  warnings.push_back(
      fmt::format("{}: edge {} -> {}{}: {}", where, edges.front().src, edges.front().dst, others, defect));
}

// Removes all but the first of equal edges and returns the removed ones.
std::vector<FileEdge> merge_duplicates(std::vector<FileEdge>& edges) {
  std::vector<std::size_t> order(edges.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(edges[a].src, edges[a].dst, a) < std::tie(edges[b].src, edges[b].dst, b);
  });
  std::vector<bool> repeated(edges.size(), false);
  for (std::size_t i = 1; i < order.size(); ++i) repeated[order[i]] = edges[order[i]] == edges[order[i - 1]];
  std::vector<FileEdge> kept, removed;
  for (std::size_t i = 0; i < edges.size(); ++i) (repeated[i] ? removed : kept).push_back(edges[i]);
  edges = std::move(kept);
  return removed;
}

}  // namespace

LoadedGraph parse_published_txt(const std::string& where, std::string_view content, const ReadOptions& options) {
  formats::TextReader reader(where, content, kTxtSeparators);
  reader.skip_to_content();
  formats::TextLine first = reader.next_line("the number of nodes");
  const std::uint64_t nodes = first.integer("the number of nodes");
  first.expect_end();
  // Only the number of inputs matters: edges and rows leave them out and number the other nodes from 0.
  const std::size_t inputs = read_integers(reader.next_line("the input nodes")).size();
  std::vector<FileEdge> edges = read_edges(where, reader);
  GraphBuilder builder(where);
  builder.set_unitless(true);
  const std::vector<double> communication = read_rows(reader, builder);
  const OpId ops = builder.op_count();
  if (nodes != inputs + ops)
    throw InputError(fmt::format("{}: {} cost rows and {} inputs; required {} together, the number on line 1", where,
                                 ops, inputs, nodes));
  check_edges(where, edges, ops);
  std::vector<std::string> warnings;
  handle_damage(where, edges, ops, options.repair, warnings);
  warn(where, merge_duplicates(edges), "more than once; merged", warnings);
  std::vector<FileEdge> backward;
  std::copy_if(edges.begin(), edges.end(), std::back_inserter(backward),
               [](const FileEdge& edge) { return edge.src > edge.dst; });
  warn(where, backward, "against the order of the ids; read as it is", warnings);
  for (OpId op = 0; op < ops; ++op) builder.add_tensor(op, 0, communication[op]);  // tensor id = op id
  for (const auto& [src, dst] : edges) builder.add_consumer(static_cast<TensorId>(src), static_cast<OpId>(dst));
  return {std::move(builder).build(), "published", std::move(warnings)};
}

}  // namespace doppler
