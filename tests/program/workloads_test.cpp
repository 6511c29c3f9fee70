#include "doppler/program/expr/workloads.h"

#include <filesystem>
#include <set>
#include <sstream>

#include "doppler/base/file.h"
#include "tests/program/support.h"
#include "tests/program/tiny_llama.h"

namespace doppler::program {
namespace {

using Edges = std::set<std::pair<OpId, OpId>>;
struct Row {
  double time, transfer;
  std::string kind;  // empty: not given
};
struct PublishedGraph {
  std::vector<Row> rows;
  Edges edges;
};

struct Case {
  std::string_view file;  // an intact twin
  Family family;
  Index parts;
  std::uint64_t digest;  // of rows and edges, for machines without the files
};
constexpr Case kCases[] = {
    {"gdp_chain_mm_112nodes.txt", Family::chain, 16, 4371335000875354481U},
    {"gdp_ffnn_192nodes.txt", Family::ffnn, 16, 14424206680521225391U},
    {"gdp_transformer_block_215nodes.txt", Family::llama_block, 4, 16527116322742139635U},
    {"gdp_full_transformer_layer_261nodes.txt", Family::llama_model, 4, 705347405037117628U},
    {"8gpu_transformer_block.txt", Family::llama_block, 8, 16439161138441740756U},
    {"8gpu_full_transformer.txt", Family::llama_model, 8, 1690383422092298642U},
};

PublishedGraph generated(const Case& c) {
  Program p;
  LlamaOptions options;
  options.part = c.family == Family::llama_block ? LlamaOptions::Part::block : LlamaOptions::Part::model;
  if (c.family == Family::chain)
    chain_of_products(p);
  else if (c.family == Family::ffnn)
    feed_forward(p);
  else
    llama(p, options);
  const Graph g = lower(p, published_plan(p, c.family, c.parts), {.costs = CostMode::published}).graph;
  PublishedGraph result;
  for (OpId op = 0; op < g.op_count(); ++op) {
    EXPECT_EQ(g.outputs(op).size(), 1u);
    const TensorId tensor = g.outputs(op).first;
    result.rows.push_back({g.explicit_time(op, 0), g.explicit_transfer(tensor).value(), g.kind(op)});
    for (const OpId consumer : g.consumers(tensor)) result.edges.emplace(op, consumer);
  }
  return result;
}

std::vector<std::uint64_t> numbers(const std::string& line) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < line.size();) {
    if (!std::isdigit(static_cast<unsigned char>(line[i]))) {
      ++i;
      continue;
    }
    std::size_t length = 0;
    result.push_back(std::stoull(line.substr(i), &length));
    i += length;
  }
  return result;
}

PublishedGraph published(const std::string& path) {
  std::istringstream text(read_file(path));
  std::string line;
  std::vector<std::string> lines;
  while (std::getline(text, line)) lines.push_back(line);
  PublishedGraph result;
  const auto sources = numbers(lines[2]), targets = numbers(lines[3]);
  for (std::size_t i = 0; i < sources.size(); ++i)
    result.edges.emplace(static_cast<OpId>(sources[i]), static_cast<OpId>(targets[i]));
  for (std::size_t i = 4; i < lines.size(); ++i) {
    const auto costs = numbers(lines[i].substr(0, lines[i].find_first_of("abcdefghijklmnopqrstuvwxyz")));
    if (costs.size() < 2) continue;
    const std::size_t kind = lines[i].find_first_of("abcdefghijklmnopqrstuvwxyz");
    result.rows.push_back({static_cast<double>(costs[0]), static_cast<double>(costs[1]),
                           kind == std::string::npos ? "" : lines[i].substr(kind)});
  }
  return result;
}

std::uint64_t digest(const PublishedGraph& graph) {
  std::uint64_t value = 0;
  for (const Row& row : graph.rows) {
    value = mix(value, static_cast<std::uint64_t>(row.time));
    value = mix(value, static_cast<std::uint64_t>(row.transfer));
  }
  for (const auto& [from, to] : graph.edges) value = mix(mix(value, from), to);
  return value;
}

TEST(AWorkload, ReproducesThePublishedGraphsRowByRowAndEdgeByEdge) {
  for (const Case& c : kCases) {
    const std::string path = fmt::format("{}/doppler_graphs/{}", DOPPLER_SHARED_DATA, c.file);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent; the digests are compared instead";
    const PublishedGraph expected = published(path), found = generated(c);
    ASSERT_EQ(found.rows.size(), expected.rows.size()) << c.file;
    for (std::size_t i = 0; i < found.rows.size(); ++i) {
      ASSERT_EQ(found.rows[i].time, expected.rows[i].time) << c.file << " row " << i;
      ASSERT_EQ(found.rows[i].transfer, expected.rows[i].transfer) << c.file << " row " << i;
      if (expected.rows[i].kind.empty()) continue;  // the 8-GPU files carry no kinds
      ASSERT_EQ(found.rows[i].kind, expected.rows[i].kind) << c.file << " row " << i;
    }
    EXPECT_EQ(found.edges, expected.edges) << c.file;
  }
}

TEST(AWorkload, KeepsTheDigestsOfThePublishedGraphs) {
  for (const Case& c : kCases) EXPECT_EQ(digest(generated(c)), c.digest) << c.file;
}

Graph uncut_graph(const Program& p) { return lower(p, uncut(p)).graph; }

TEST(AWorkload, TakesEverySizeAsAnOption) {
  Program chain;
  chain_of_products(chain, {.association = ChainOptions::Association::balanced, .size = 8, .matrices = 6});
  EXPECT_EQ(uncut_graph(chain).op_count(), 2u * 5u);
  Program ffnn;
  feed_forward(ffnn, {.batch = 4, .input = 3, .hidden = 5, .output = 2, .layers = 3});
  EXPECT_EQ(ffnn.weights().size(), 3u);
  EXPECT_EQ(ffnn.node(ffnn.outputs()[0]).shape, (Shape{4, 2}));
  LlamaOptions big = llama_model("65b");
  EXPECT_EQ(big.hidden, 22016);  // 256·⌈⌊8·8192/3⌋/256⌉
  EXPECT_EQ(llama_model("7b").hidden, 11008);
  EXPECT_EQ(message_of([] { llama_model("8b"); }), "model: found '8b'; required 7b, 13b, 30b or 65b");
}

TEST(AWorkload, DecodesOneTokenAgainstACache) {
  Program p;
  LlamaOptions options = tiny_llama();
  options.layers = 2;
  options.batch = 2;
  options.decode = true;
  llama(p, options);
  EXPECT_EQ(p.node(p.outputs()[0]).shape, (Shape{2, 5}));
  const auto values = evaluate(p, random_inputs(p, 1));
  for (const auto& v : values[p.outputs()[0]].values) EXPECT_TRUE(std::isfinite(v.real()));
}

TEST(AWorkload, TrainsOnTheLossOfAllTokens) {
  Program p;
  LlamaOptions options = tiny_llama();
  options.train = true;
  llama(p, options);
  EXPECT_EQ(p.node(p.outputs()[0]).shape, Shape{});
  options.decode = true;
  Program q;
  EXPECT_EQ(message_of([&] { llama(q, options); }),
            "llama: found a decode step that trains; required one or the other");
}

TEST(AWorkload, RefusesPublishedBoxesForOtherParts) {
  Program p;
  llama(p);
  EXPECT_EQ(message_of([&] { published_plan(p, Family::llama_model, 5); }),
            "published plan: found 5 parts; required 4 or 8");
}

}  // namespace
}  // namespace doppler::program
