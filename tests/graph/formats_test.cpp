#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/dot.h"
#include "doppler/graph/formats/native_json.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/graph/generate.h"

namespace doppler {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::string good(const std::string& name) { return std::string(DOPPLER_TEST_DATA) + "/good/" + name; }
std::string shared_file(const std::string& name) { return std::string(DOPPLER_SHARED_DATA) + "/" + name; }

#define SKIP_WITHOUT_SHARED_DATA()                   \
  if (!std::filesystem::exists(DOPPLER_SHARED_DATA)) \
  GTEST_SKIP() << "no " << DOPPLER_SHARED_DATA << "; it holds the published graphs"

template <typename T>
std::vector<T> values_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

using Edges = std::vector<std::pair<OpId, OpId>>;

Edges edges_of(const Graph& graph) {
  Edges edges;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    for (const OpId consumer : graph.consumers(tensor)) edges.emplace_back(graph.producer(tensor), consumer);
  return edges;
}

std::set<std::pair<OpId, OpId>> edge_set(const Graph& graph) {
  const Edges edges = edges_of(graph);
  return {edges.begin(), edges.end()};
}

Seconds time_on(const Graph& graph, OpId op, std::string_view type) {
  for (std::size_t column = 0; column < graph.cost_types().size(); ++column)
    if (graph.cost_types()[column] == type) return graph.explicit_time(op, column);
  ADD_FAILURE() << "no column " << type;
  return 0;
}

// ---- native JSON ----

TEST(NativeJson, CarriesEverythingAGraphKnows) {
  const LoadedGraph loaded = read_graph(good("native_small.json"));
  const Graph& graph = loaded.graph;
  EXPECT_EQ(loaded.format, "native");
  EXPECT_EQ(graph.title(), "two-layer example");
  EXPECT_FALSE(graph.unitless());
  ASSERT_EQ(graph.op_count(), 4u);
  EXPECT_EQ(graph.name(1), "matmul");
  EXPECT_EQ(graph.kind(1), "matmul");
  EXPECT_EQ(graph.dtype(1), "f16");
  EXPECT_EQ(graph.dtype(0), "f32");
  EXPECT_EQ(graph.flops(1), 1e9);
  EXPECT_EQ(graph.bytes_read(1), 4096u);
  EXPECT_EQ(graph.bytes_written(0), 4096u);
  EXPECT_EQ(graph.parameter_bytes(1), 65536u);
  EXPECT_EQ(graph.group(1), graph.group(2));
  EXPECT_EQ(graph.group_name(graph.group(1)), "weights");
  EXPECT_EQ(time_on(graph, 2, "cpu"), 0.25);
  EXPECT_EQ(time_on(graph, 2, "accelerator"), kNever);
  EXPECT_TRUE(std::isnan(time_on(graph, 0, "cpu")));
  EXPECT_EQ(edges_of(graph), (Edges{{0, 1}, {0, 3}, {1, 2}, {1, 3}}));
  EXPECT_EQ(values_of(graph.inputs(3)), (std::vector<TensorId>{2, 0}));
  EXPECT_EQ(graph.explicit_transfer(2), 0.5);
  EXPECT_EQ(graph.explicit_transfer(0), std::nullopt);
}

TEST(NativeJson, IsWrittenAsItWasRead) {
  const std::string text = read_file(good("native_small.json"));
  std::string written = graph_to_json(parse_graph("x", text).graph);
  // The file spells 10^9 flops "1e9"; the writer spells them out.
  EXPECT_EQ(written.replace(written.find("1000000000"), 10, "1e9"), text);
}

TEST(NativeJson, IsTheExampleOfTheDocumentation) {
  const std::string page = read_file(std::string(DOPPLER_TEST_DATA) + "/../../docs/formats.md");
  EXPECT_NE(page.find(read_file(good("native_small.json"))), std::string::npos)
      << "docs/formats.md must show tests/data/good/native_small.json";
}

TEST(NativeJson, RoundTripsEveryFormatByteForByte) {
  for (const char* name : {"native_small.json", "published.txt", "stg.stg", "stg_without_task_0.stg",
                           "wfcommons_1.4.json", "wfcommons_1.5.json", "dnn_partitioning.json"}) {
    const std::string first = graph_to_json(read_graph(good(name)).graph);
    EXPECT_EQ(graph_to_json(parse_graph("again", first).graph), first) << name;
  }
}

TEST(NativeJson, RoundTripsNamesNumbersAndUnits) {
  GraphBuilder builder("path with \"quotes\"");
  builder.set_unitless(true);
  OpSpec spec;
  spec.name = "κ \\ \"\n\x01";
  spec.flops = 0.1;
  spec.explicit_times["a \"type\""] = 1e-300;
  builder.add_op(spec);
  spec.name = "op7";  // not op 7
  spec.flops = 9007199254740993.0;
  builder.add_op(spec);
  const std::string first = graph_to_json(std::move(builder).build());
  const Graph graph = parse_graph("again", first).graph;
  EXPECT_EQ(graph_to_json(graph), first);
  EXPECT_EQ(graph.name(0), "κ \\ \"\n\x01");
  EXPECT_EQ(graph.name(1), "op7");
  EXPECT_EQ(graph.flops(0), 0.1);
  EXPECT_EQ(time_on(graph, 0, "a \"type\""), 1e-300);
  EXPECT_TRUE(graph.unitless());
  EXPECT_EQ(graph.title(), "path with \"quotes\"");
}

TEST(NativeJson, MayListTensorsBeforeOps) {
  const Graph graph = parse_graph("x", R"({"tensors":[{"producer":0,"consumers":[1]}],"ops":[{},{}],"version":1,
                          "format":"doppler-graph"})")
                          .graph;
  EXPECT_EQ(edges_of(graph), (Edges{{0, 1}}));
}

// ---- published ----

TEST(PublishedText, GivesEveryOpItsTwoCostsInTheFilesOwnUnit) {
  const LoadedGraph loaded = read_graph(good("published.txt"));
  const Graph& graph = loaded.graph;
  EXPECT_EQ(loaded.format, "published");
  EXPECT_TRUE(loaded.warnings.empty());
  EXPECT_TRUE(graph.unitless());
  ASSERT_EQ(graph.op_count(), 5u);  // 7 nodes, 2 of them inputs
  ASSERT_EQ(graph.tensor_count(), 5u);
  EXPECT_EQ(time_on(graph, 1, "*"), 20);
  EXPECT_EQ(graph.explicit_transfer(1), 80);
  EXPECT_EQ(graph.bytes(1), 0u);
  EXPECT_EQ(graph.kind(0), "op");
  EXPECT_EQ(graph.kind(1), "matmul");
  EXPECT_EQ(graph.kind(2), "add");
  EXPECT_EQ(graph.kind(4), "select");
  EXPECT_EQ(values_of(graph.consumers(0)), (std::vector<OpId>{2, 1}));  // the file's order, not that of the ids
}

TEST(PublishedText, MergesDuplicateEdgesAndSaysSo) {
  const LoadedGraph loaded = parse_graph("f", "3\n\n0,0,0,1,1\n1,1,1,2,2\n1,4\n1,4\n1,4\n");
  EXPECT_EQ(edges_of(loaded.graph), (Edges{{0, 1}, {1, 2}}));
  EXPECT_EQ(loaded.warnings, std::vector<std::string>{"f: edge 0 -> 1 and 2 more: more than once; merged"});
}

TEST(PublishedText, WarnsAboutEdgesAgainstTheOrderOfIds) {
  const LoadedGraph loaded = parse_graph("f", "3\n\n2,0,\n1,2,\n1,4\n1,4\n1,4\n");
  EXPECT_EQ(edges_of(loaded.graph), (Edges{{0, 2}, {2, 1}}));
  EXPECT_EQ(loaded.warnings, std::vector<std::string>{"f: edge 2 -> 1: against the order of the ids; read as it is"});
}

struct PublishedFile {
  const char* name;
  OpId ops;
  std::size_t edges;
};

TEST(PublishedText, HasTheSizesOfThePublishedGraphs) {
  SKIP_WITHOUT_SHARED_DATA();
  // spec/workloads.md, section 3.
  for (const auto& [name, ops, edges] : {PublishedFile{"chain_mm_112nodes", 76, 80},
                                         {"ffnn_192nodes", 180, 208},
                                         {"transformer_block_215nodes", 182, 234},
                                         {"full_transformer_layer_261nodes", 229, 284},
                                         {"8gpu_transformer_block", 302, 398},
                                         {"8gpu_full_transformer", 367, 470}}) {
    const LoadedGraph loaded = read_graph(shared_file(fmt::format("doppler_graphs/{}.txt", name)));
    EXPECT_EQ(loaded.graph.op_count(), ops) << name;
    EXPECT_EQ(loaded.graph.edge_count(), edges) << name;
    // Trap 2 of the specification: communication costs four times the computation, on every row.
    for (OpId op = 0; op < ops; ++op) EXPECT_EQ(loaded.graph.explicit_transfer(op), 4 * time_on(loaded.graph, op, "*"));
  }
}

TEST(PublishedText, IsReadAsItIsUnlessRepairIsAskedFor) {
  SKIP_WITHOUT_SHARED_DATA();
  const std::string path = shared_file("doppler_graphs/chain_mm_112nodes.txt");
  const LoadedGraph shipped = read_graph(path);
  EXPECT_TRUE(edge_set(shipped.graph).contains({1, 6}));
  EXPECT_EQ(shipped.warnings, std::vector<std::string>{
                                  path + ": edge 1 -> 6 of this published graph is damaged, meant is 1 -> 16; read as "
                                         "it is, --repair fixes it"});
  const LoadedGraph repaired = read_graph(path, {.repair = true});
  EXPECT_EQ(repaired.warnings,
            std::vector<std::string>{path + ": edge 1 -> 6 of this published graph is damaged, repaired to 1 -> 16"});
}

TEST(PublishedText, RepairedHasTheEdgesOfItsIntactTwin) {
  SKIP_WITHOUT_SHARED_DATA();
  for (const char* name :
       {"chain_mm_112nodes", "ffnn_192nodes", "transformer_block_215nodes", "full_transformer_layer_261nodes"}) {
    const auto repaired = read_graph(shared_file(fmt::format("doppler_graphs/{}.txt", name)), {.repair = true});
    const auto twin = read_graph(shared_file(fmt::format("doppler_graphs/gdp_{}.txt", name)));
    EXPECT_EQ(edges_of(repaired.graph), edges_of(twin.graph)) << name;
    EXPECT_TRUE(twin.warnings.empty()) << name;
  }
}

TEST(PublishedText, ThatIsIntactIsNotAccused) {
  SKIP_WITHOUT_SHARED_DATA();
  for (const char* name : {"ffnn_192nodes", "8gpu_transformer_block", "8gpu_full_transformer"}) {
    const std::string path = shared_file(fmt::format("doppler_graphs/{}.txt", name));
    EXPECT_TRUE(read_graph(path).warnings.empty()) << name;
    EXPECT_EQ(edges_of(read_graph(path).graph), edges_of(read_graph(path, {.repair = true}).graph)) << name;
  }
}

// ---- STG ----

TEST(Stg, GivesTimesInTheFilesOwnUnitAndFreeTransfers) {
  const LoadedGraph loaded = read_graph(good("stg.stg"));
  const Graph& graph = loaded.graph;
  EXPECT_EQ(loaded.format, "stg");
  EXPECT_TRUE(graph.unitless());
  ASSERT_EQ(graph.op_count(), 5u);  // three tasks and two dummies
  EXPECT_EQ(graph.name(2), "2");
  EXPECT_EQ(time_on(graph, 2, "*"), 7);
  EXPECT_EQ(graph.explicit_transfer(2), 0);
  EXPECT_EQ(edges_of(graph), (Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}}));
}

TEST(Stg, MayGiveTheNumberOfProcessorsAndOmitTaskZero) {
  const Graph graph = read_graph(good("stg_without_task_0.stg")).graph;
  ASSERT_EQ(graph.op_count(), 3u);
  EXPECT_EQ(graph.name(0), "1");
  EXPECT_EQ(edges_of(graph), (Edges{{0, 1}, {1, 2}}));
}

TEST(Stg, ReadsTheCollection) {
  SKIP_WITHOUT_SHARED_DATA();
  // 50 tasks and two dummies; 273 and two; 80 and only the last.
  EXPECT_EQ(read_graph(shared_file("instances/stg/rand0000.stg")).graph.op_count(), 52u);
  EXPECT_EQ(read_graph(shared_file("instances/stg/proto006.stg")).graph.op_count(), 275u);
  EXPECT_EQ(read_graph(shared_file("instances/stg/proto151.stg")).graph.op_count(), 81u);
}

TEST(Stg, ReadsAChainOfAMillionTasks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kTasks = 100'000;
#else
  constexpr int kTasks = 1'000'000;
#endif
  std::string text = fmt::format("{}\n0 0 0\n", kTasks);
  for (int task = 1; task <= kTasks + 1; ++task) text += fmt::format("{} 5 1 {}\n", task, task - 1);
  const Graph graph = parse_graph("chain", text).graph;
  EXPECT_EQ(graph.op_count(), kTasks + 2u);
  EXPECT_EQ(graph.edge_count(), kTasks + 1u);
}

// ---- WfCommons ----

TEST(WfCommons14, MakesFilesTensorsAndOtherDependencesEmptyOnes) {
  const LoadedGraph loaded = read_graph(good("wfcommons_1.4.json"));
  const Graph& graph = loaded.graph;
  EXPECT_EQ(loaded.format, "wfcommons");
  ASSERT_EQ(graph.op_count(), 4u);
  EXPECT_EQ(graph.name(0), "split");
  EXPECT_EQ(graph.kind(0), "cut");
  EXPECT_EQ(graph.kind(1), "op");
  EXPECT_EQ(time_on(graph, 0, "*"), 1.5);
  EXPECT_FALSE(graph.unitless());
  // half.dat goes to left and right (which names its parent by id); report shares no file with its parents.
  ASSERT_EQ(graph.tensor_count(), 3u);
  EXPECT_EQ(graph.bytes(0), 500u);
  EXPECT_EQ(values_of(graph.consumers(0)), (std::vector<OpId>{1, 2}));
  EXPECT_EQ(graph.bytes(1), 0u);
  EXPECT_EQ(graph.bytes(2), 0u);
  EXPECT_EQ(edges_of(graph), (Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}}));
}

TEST(WfCommons15, FollowsAFileThatIsWrittenTwiceThroughTheParents) {
  const Graph graph = read_graph(good("wfcommons_1.5.json")).graph;
  ASSERT_EQ(graph.op_count(), 3u);
  EXPECT_EQ(graph.name(0), "split_1");
  EXPECT_EQ(graph.kind(0), "cut");
  EXPECT_EQ(time_on(graph, 0, "*"), 1.5);
  EXPECT_EQ(time_on(graph, 2, "*"), 4);
  // split writes half.dat and log; left reads both and rewrites log; report reads the log of left, its
  // parent.
  ASSERT_EQ(graph.tensor_count(), 3u);
  EXPECT_EQ(edges_of(graph), (Edges{{0, 1}, {0, 1}, {1, 2}}));
  EXPECT_EQ(graph.bytes(0), 500u);
  EXPECT_EQ(graph.bytes(1), 10u);
}

TEST(WfCommons15, ReadsARecordedWorkflow) {
  SKIP_WITHOUT_SHARED_DATA();
  const Graph graph = read_graph(shared_file("instances/wfcommons/montage-chameleon-2mass-01d-001.json")).graph;
  EXPECT_EQ(graph.op_count(), 103u);
  const OpId first = graph.op_by_name("mProject_ID0000001");
  EXPECT_EQ(time_on(graph, first, "*"), 15.712);
  // It writes an image of 4150080 bytes that these five tasks read, as its list of children says.
  std::set<std::string> readers;
  for (const TensorId tensor : graph.outputs(first))
    for (const OpId consumer : graph.consumers(tensor)) readers.insert(graph.name(consumer));
  EXPECT_EQ(readers, (std::set<std::string>{"mDiffFit_ID0000008", "mDiffFit_ID0000009", "mDiffFit_ID0000010",
                                            "mDiffFit_ID0000011", "mBackground_ID0000025"}));
  EXPECT_EQ(graph.bytes(graph.outputs(first).first), 4150080u);
}

// ---- dnn-partitioning ----

TEST(DnnPartitioning, GivesSecondsPerDeviceTypeMemoryAndGroups) {
  const LoadedGraph loaded = read_graph(good("dnn_partitioning.json"));
  const Graph& graph = loaded.graph;
  EXPECT_EQ(loaded.format, "dnn-partitioning");
  ASSERT_EQ(graph.op_count(), 3u);
  EXPECT_EQ(graph.name(1), "dense");
  EXPECT_EQ(graph.name(2), "dense#9");  // a second "dense"
  EXPECT_EQ(graph.kind(2), "backward");
  EXPECT_DOUBLE_EQ(time_on(graph, 1, "cpu"), 0.020);
  EXPECT_DOUBLE_EQ(time_on(graph, 1, "accelerator"), 0.002);
  EXPECT_EQ(time_on(graph, 0, "accelerator"), kNever);
  EXPECT_EQ(graph.parameter_bytes(0), 1001u);
  EXPECT_EQ(graph.group(0), graph.group(2));
  EXPECT_EQ(graph.group(1), Graph::kNoGroup);
  EXPECT_FALSE(graph.unitless());
}

TEST(DnnPartitioning, SharesOneTensorAmongEdgesOfEqualCost) {
  const Graph graph = read_graph(good("dnn_partitioning.json")).graph;
  ASSERT_EQ(graph.tensor_count(), 2u);
  EXPECT_EQ(values_of(graph.consumers(0)), (std::vector<OpId>{1, 2}));
  EXPECT_DOUBLE_EQ(*graph.explicit_transfer(0), 0.008);
  EXPECT_DOUBLE_EQ(*graph.explicit_transfer(1), 0.0005);
  EXPECT_EQ(graph.bytes(0), 0u);
}

TEST(DnnPartitioning, TellsTheMachineItWasMadeFor) {
  const std::string path = good("dnn_partitioning.json");
  EXPECT_EQ(
      read_graph(path).warnings,
      std::vector<std::string>{path + ": made for 4 accelerators of 600 MiB and 8 cpus: --machine uniform:4:600MiB"});
}

TEST(DnnPartitioning, ReadsTheCollection) {
  SKIP_WITHOUT_SHARED_DATA();
  for (const auto& [name, ops, edges] : {PublishedFile{"LayerGraphs_bert24_inference", 32, 55},
                                         {"LayerGraphs_resnet50_inference", 177, 193},
                                         {"OperatorGraphs_bert_l-3_inference", 235, 250}}) {
    const Graph graph = read_graph(shared_file(fmt::format("instances/dnn_partitioning/{}.json", name))).graph;
    EXPECT_EQ(graph.op_count(), ops) << name;
    EXPECT_EQ(graph.edge_count(), edges) << name;
  }
}

// ---- by content ----

TEST(AnyFormat, MayStartWithAByteOrderMarkAndBlankLines) {
  EXPECT_EQ(parse_graph("x", "\xEF\xBB\xBF\n\n" + read_file(good("native_small.json"))).format, "native");
  for (const char* name : {"stg.stg", "published.txt"}) {
    const Graph graph = parse_graph("x", "\xEF\xBB\xBF\n\n" + read_file(good(name))).graph;
    EXPECT_EQ(edges_of(graph), edges_of(read_graph(good(name)).graph)) << name;
  }
}

TEST(AnyFormat, MayHaveWindowsLineEnds) {
  for (const char* name : {"published.txt", "stg.stg"}) {
    std::string text;
    for (const char c : read_file(good(name))) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(edges_of(parse_graph("x", text).graph), edges_of(read_graph(good(name)).graph)) << name;
  }
}

TEST(AnyFormat, GivesErrorsTheLineOfTheFile) {
  try {
    parse_graph("f", "\n\n1\n0 0 0\n1 x 1 0\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "f: line 5: found 'x'; required a processing time");
  }
}

// ---- DOT ----

TEST(Dot, DrawsOpsAndEdges) {
  GraphBuilder builder("a \"title\"");
  OpSpec spec;
  spec.name = "say \"hi\"";
  spec.kind = "matmul";
  builder.add_op(spec);
  builder.add_op({});
  builder.add_consumer(builder.add_tensor(0, 1), 1);
  const Graph graph = std::move(builder).build();
  EXPECT_EQ(graph_to_dot(graph), R"(digraph "a \"title\"" {
  node [shape=box, style=filled, fillcolor=white];
  0 [label="say \"hi\"\nmatmul"];
  1 [label="op1\nop"];
  0 -> 1;
}
)");
  const std::vector<DeviceId> devices = {1, 12};
  const std::string coloured = graph_to_dot(graph, devices);
  EXPECT_NE(coloured.find(R"(0 [label="say \"hi\"\nmatmul\ndevice 1", fillcolor="#fdbf6f"];)"), std::string::npos);
  EXPECT_NE(coloured.find(R"(1 [label="op1\nop\ndevice 12", fillcolor="#a6cee3"];)"), std::string::npos);
  EXPECT_THROW(graph_to_dot(graph, std::vector<DeviceId>{1}), InternalError);
}

}  // namespace
}  // namespace doppler
