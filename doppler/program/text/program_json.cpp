#include "doppler/program/text/program_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"

namespace doppler::program {
namespace {

using formats::Json;
using formats::JsonFields;
using Op = Scalar::Op;
using Instruction = Scalar::Instruction;

constexpr int kVersion = 1;

constexpr std::array<std::string_view, 12> kInstructionNames = {"argument", "constant",  "variable", "add",
                                                                "multiply", "power",     "exp",      "log",
                                                                "tanh",     "conjugate", "convert",  "select"};

// ---- writing ----

// JSON has neither infinities nor NaN.
Json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json scalar_to_json(const Scalar& scalar) {
  Json code = Json::array();
  for (const Instruction& i : scalar.code()) {
    Json row = {kInstructionNames[static_cast<std::size_t>(i.op)]};
    if (i.op == Op::argument) row.push_back(i.in[0]);
    if (i.op == Op::constant) row.push_back(number_to_json(i.value));
    if (i.op == Op::variable) row.push_back(i.name);
    if (i.op == Op::convert) row.push_back(to_string(i.dtype));
    for (std::size_t k = 0; k < Scalar::arity(i.op); ++k) row.push_back(i.in[k]);
    code.push_back(std::move(row));
  }
  return code;
}

// The fields of an expression that its kind needs; what follows from its inputs is left out.
struct KindWriter {
  const Node& node;
  Json& fields;

  void operator()(const Input& input) const {
    fields["op"] = input.weight ? "weight" : "input";
    fields["shape"] = node.shape;
    fields["dtype"] = to_string(node.dtype);
  }
  void operator()(const Einsum& einsum) const {
    fields["op"] = "einsum";
    fields["labels"] = einsum.labels;
    fields["sizes"] = einsum.sizes;
    fields["rank"] = node.shape.size();
    fields["operands"] = einsum.operands;
    fields["join"] = scalar_to_json(einsum.join);
    if (einsum.aggregate) fields["aggregate"] = to_string(*einsum.aggregate);
  }
  void operator()(const Formation&) const { fields["op"] = "formation"; }
  void operator()(const Select& select) const {
    fields["op"] = "select";
    fields["begin"] = select.region.begin;
    fields["end"] = select.region.end;
  }
  void operator()(const Concat& concat) const {
    fields["op"] = "concat";
    fields["axis"] = concat.axis;
  }
  void operator()(const Fill& fill) const {
    fields["op"] = "fill";
    fields["shape"] = node.shape;
    fields["dtype"] = to_string(node.dtype);
    fields["value"] = number_to_json(fill.value);
    fields["above"] = number_to_json(fill.above);
  }
  void operator()(const Squeeze&) const {
    fields["op"] = "squeeze";
    fields["shape"] = node.shape;
  }
  void operator()(const Complexer&) const { fields["op"] = is_complex(node.dtype) ? "to_complex" : "to_real"; }
  void operator()(const Stencil&) const { throw InternalError("program: a stencil has no values; required none"); }
};

Json expression_to_json(const Node& node, const Box& box) {
  Json fields = {{"name", node.name}};
  if (!node.inputs.empty()) fields["inputs"] = node.inputs;
  std::visit(KindWriter{node, fields}, node.computation);
  const bool cut = std::any_of(box.begin(), box.end(), [](Index pieces) { return pieces > 1; });
  if (cut && node.as<Formation>() == nullptr) fields["box"] = box;
  return fields;
}

// ---- reading ----

class Reader {
 public:
  Reader(const std::string& where, const JsonFields& head) : where_(where), head_(head) {}

  RunnableProgram read() {
    head_.refuse_other_keys(
        {"version", "costs", "speeds", "skip_single_formations", "expressions", "outputs", "updates"});
    if (const Json* version = head_.find("version"); version == nullptr || *version != kVersion)
      head_.fail("version", std::to_string(kVersion));
    result_.program = std::make_unique<Program>();
    read_options();
    const Json* expressions = head_.find("expressions");
    if (expressions == nullptr || !expressions->is_array()) head_.fail("expressions", "an array");
    for (const Json& expression : *expressions) read_expression(expression);
    if (formation_missing_) refuse("the last expression is a partial result", "its formation");
    for (const ExprId id : head_.indices("outputs")) result_.program->mark_output(value("'outputs'", id));
    read_updates();
    complete(*result_.program, result_.plan);
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& found, const std::string& required) const {
    throw InputError(fmt::format("{}: {}; required {}", where_, found, required));
  }

  void read_options() {
    LowerOptions& options = result_.options;
    options.costs = parse_cost_mode(head_.string_or("costs", to_string(options.costs)));
    if (const Json* skip = head_.find("skip_single_formations")) {
      if (!skip->is_boolean()) head_.fail("skip_single_formations", "true or false");
      options.skip_single_formations = skip->get<bool>();
    }
    const Json* given = head_.find("speeds");
    if (given == nullptr) return;
    const JsonFields fields(where_ + ": speeds", *given);
    fields.refuse_other_keys(
        {"flops_per_second", "memory_bytes_per_second", "link_bytes_per_second", "latency", "overhead"});
    const auto read = [&](const char* key, double& speed, double least) {
      speed = fields.number(key);
      if (!(speed >= least && speed <= kLargestCost)) fields.fail(key, fmt::format("a number from {:g} on", least));
    };
    constexpr double kSlowest = 1e-18;  // so that times stay finite
    read("flops_per_second", options.speeds.flops_per_second, kSlowest);
    read("memory_bytes_per_second", options.speeds.memory_bytes_per_second, kSlowest);
    read("link_bytes_per_second", options.speeds.link_bytes_per_second, kSlowest);
    read("latency", options.speeds.latency, 0);
    read("overhead", options.speeds.overhead, 0);
  }

  void read_expression(const Json& expression) {
    Program& program = *result_.program;
    const JsonFields fields(fmt::format("{}: expression {}", where_, result_.plan.size()), expression);
    const std::string& name = fields.string("name");
    const std::string& op = fields.string("op");
    if (!names_.insert(name).second) fields.fail("name", "a name that no other expression has");
    if (formation_missing_ != (op == "formation"))
      fields.fail("op", formation_missing_ ? "the formation of the partial result before it"
                                           : "something else: no partial result stands before it");
    if (formation_missing_) {  // the program has it already
      fields.refuse_other_keys({"name", "op", "inputs"});
      if (fields.indices("inputs") != std::vector<std::uint32_t>{program.size() - 2})
        fields.fail("inputs", fmt::format("[{}]", program.size() - 2));
      formation_missing_ = false;
      program.rename(program.expr(program.size() - 1), name);
      result_.plan.emplace_back();
      return;
    }
    const ExprId before = program.size();
    try {
      add(op, fields);
    } catch (const InputError& error) {
      const std::string text = error.what();
      throw text.starts_with(where_) ? error : InputError(fmt::format("{}: {}", fields.where(), text));
    }
    program.rename(program.expr(before), name);
    formation_missing_ = program.size() == before + 2;
    read_box(fields, program.node(before).join_shape().size());
  }

  void read_box(const JsonFields& fields, std::size_t labels) {
    result_.plan.emplace_back(labels, 1);
    if (fields.find("box") == nullptr) return;
    result_.plan.back() = sizes(fields, "box");
  }

  // Adds the expression, and its formation if it aggregates. The program checks shapes and dtypes.
  void add(const std::string& op, const JsonFields& fields) {
    Program& program = *result_.program;
    if (op == "input" || op == "weight") {
      fields.refuse_other_keys({"name", "op", "box", "shape", "dtype"});
      const DType dtype = parse_dtype(fields.string("dtype"));
      op == "input" ? program.input("e", sizes(fields, "shape"), dtype)
                    : program.weight("e", sizes(fields, "shape"), dtype);
    } else if (op == "einsum") {
      add_einsum(fields);
    } else if (op == "select") {
      fields.refuse_other_keys({"name", "op", "box", "inputs", "begin", "end"});
      program.select(one_input(fields), {sizes(fields, "begin"), sizes(fields, "end")});
    } else if (op == "concat") {
      fields.refuse_other_keys({"name", "op", "box", "inputs", "axis"});
      program.concat(inputs(fields), fields.index("axis"));
    } else if (op == "fill") {
      fields.refuse_other_keys({"name", "op", "box", "shape", "dtype", "value", "above"});
      program.fill(sizes(fields, "shape"), parse_dtype(fields.string("dtype")),
                   {.value = number(fields, "value"), .above = number(fields, "above")});
    } else if (op == "squeeze") {
      fields.refuse_other_keys({"name", "op", "box", "inputs", "shape"});
      const Shape shape = sizes(fields, "shape");
      program.reshape_ones(one_input(fields), shape);
    } else if (op == "to_complex" || op == "to_real") {
      fields.refuse_other_keys({"name", "op", "box", "inputs"});
      op == "to_complex" ? program.to_complex(one_input(fields)) : program.to_real(one_input(fields));
    } else {
      fields.fail("op", "input, weight, einsum, formation, select, concat, fill, squeeze, to_complex or to_real");
    }
  }

  void add_einsum(const JsonFields& fields) {
    fields.refuse_other_keys(
        {"name", "op", "box", "inputs", "labels", "sizes", "rank", "operands", "join", "aggregate"});
    const std::vector<Expr> operands = inputs(fields);
    const std::vector<std::string> labels = fields.strings("labels");
    const Shape label_sizes = sizes(fields, "sizes");
    const std::uint32_t rank = fields.index("rank");
    if (label_sizes.size() != labels.size()) fields.fail("sizes", "one per label");
    if (rank > labels.size()) fields.fail("rank", "at most the number of labels");
    EinsumOptions options;
    for (std::size_t i = 0; i < labels.size(); ++i) options.sizes[labels[i]] = label_sizes[i];
    options.join = scalar(fields);
    if (options.join->argument_count() > operands.size()) fields.fail("join", "arguments that are inputs");
    if (fields.find("aggregate") != nullptr) options.aggregate = parse_aggregate(fields);
    const auto numbers = label_numbers(fields, labels.size());
    Program::LabelLists names;
    for (const auto& list : numbers) {
      names.emplace_back();
      for (const std::uint32_t label : list) names.back().push_back(labels[label]);
    }
    Program& program = *result_.program;
    const ExprId id = program.size();
    program.einsum(names, {labels.begin(), labels.begin() + rank}, operands, options);
    const Einsum& einsum = *program.node(id).as<Einsum>();
    if (einsum.labels != labels || einsum.operands != numbers)
      fields.fail("operands", "labels in the order in which the output and the operands name them");
  }

  static std::vector<std::vector<std::uint32_t>> label_numbers(const JsonFields& fields, std::size_t labels) {
    const auto is_label = [&](const Json& e) { return e.is_number_unsigned() && e.get<std::uint64_t>() < labels; };
    const auto is_list = [&](const Json& e) { return e.is_array() && std::all_of(e.begin(), e.end(), is_label); };
    const Json* lists = fields.find("operands");
    if (lists == nullptr || !lists->is_array() || !std::all_of(lists->begin(), lists->end(), is_list))
      fields.fail("operands", "an array of labels, by number, for each input");
    return lists->get<std::vector<std::vector<std::uint32_t>>>();
  }

  static Aggregate parse_aggregate(const JsonFields& fields) {
    const std::string& text = fields.string("aggregate");
    for (const Aggregate aggregate : {Aggregate::sum, Aggregate::product, Aggregate::max, Aggregate::min})
      if (to_string(aggregate) == text) return aggregate;
    fields.fail("aggregate", "sum, product, max or min");
  }

  static Scalar scalar(const JsonFields& fields) {
    const Json* rows = fields.find("join");
    if (rows == nullptr || !rows->is_array()) fields.fail("join", "an array of instructions");
    std::vector<Instruction> code;
    for (const Json& row : *rows) code.push_back(instruction(row));
    return Scalar::from_code(std::move(code));
  }

  static Instruction instruction(const Json& row) {
    const auto refuse_row = [&](std::string_view required) {
      throw InputError(fmt::format("join: found {}; required {}", formats::shown(row), required));
    };
    if (!row.is_array() || row.empty() || !row[0].is_string()) refuse_row("[instruction, operand, …]");
    const auto name = std::find(kInstructionNames.begin(), kInstructionNames.end(), row[0].get<std::string>());
    if (name == kInstructionNames.end()) refuse_row(fmt::format("one of {}", fmt::join(kInstructionNames, ", ")));
    Instruction result{.op = static_cast<Op>(name - kInstructionNames.begin()), .name = {}};
    const bool has_own = Scalar::arity(result.op) == 0 || result.op == Op::convert;
    const std::size_t first = has_own ? 2 : 1;
    if (row.size() != first + Scalar::arity(result.op)) refuse_row("as many operands as the instruction has");
    const auto operand = [&](std::size_t at) {
      if (!row[at].is_number_unsigned() || row[at].get<std::uint64_t>() > std::numeric_limits<std::uint16_t>::max())
        refuse_row("operands by number");
      return row[at].get<std::uint32_t>();
    };
    if (result.op == Op::argument) result.in[0] = operand(1);
    if (result.op == Op::constant) result.value = number(row[1], "join");
    if ((result.op == Op::variable || result.op == Op::convert) && !row[1].is_string()) refuse_row("a name");
    if (result.op == Op::variable) result.name = row[1].get<std::string>();
    if (result.op == Op::convert) result.dtype = parse_dtype(row[1].get<std::string>());
    for (std::size_t k = 0; k < Scalar::arity(result.op); ++k) result.in[k] = operand(first + k);
    return result;
  }

  static double number(const Json& value, std::string_view what) {
    if (value.is_number()) return value.get<double>();
    if (value == "inf") return std::numeric_limits<double>::infinity();
    if (value == "-inf") return -std::numeric_limits<double>::infinity();
    if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
    throw InputError(
        fmt::format("{}: found {}; required a number, \"inf\", \"-inf\" or \"nan\"", what, formats::shown(value)));
  }
  static double number(const JsonFields& fields, const char* key) {
    const Json* value = fields.find(key);
    if (value == nullptr) fields.fail(key, "a number");
    return number(*value, key);
  }

  static std::vector<Index> sizes(const JsonFields& fields, const char* key) {
    const auto is_size = [](const Json& element) {
      return element.is_number_unsigned() && element.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMostElements);
    };
    const Json* value = fields.find(key);
    if (value == nullptr || !value->is_array() || !std::all_of(value->begin(), value->end(), is_size))
      fields.fail(key, "an array of whole numbers");
    return value->get<std::vector<Index>>();
  }

  // An earlier expression that has a value of its own: partial results have not.
  Expr value(const std::string& where, std::uint32_t id) const {
    Program& program = *result_.program;
    if (id >= program.size()) refuse(fmt::format("{} name expression {}", where, id), "an earlier one");
    const Einsum* einsum = program.node(id).as<Einsum>();
    if (einsum != nullptr && einsum->aggregate)
      refuse(fmt::format("{} name the partial result '{}'", where, program.node(id).name), "its formation");
    return program.expr(id);
  }

  std::vector<Expr> inputs(const JsonFields& fields) const {
    std::vector<Expr> result;
    for (const std::uint32_t id : fields.indices("inputs"))
      result.push_back(value(fmt::format("'inputs' of '{}'", fields.string("name")), id));
    if (result.empty()) fields.fail("inputs", "at least one expression");
    return result;
  }
  Expr one_input(const JsonFields& fields) const {
    const std::vector<Expr> all = inputs(fields);
    if (all.size() != 1) fields.fail("inputs", "one expression");
    return all[0];
  }

  void read_updates() {
    Program& program = *result_.program;
    const Json* updates = head_.find("updates");
    if (updates == nullptr) return;
    const auto is_pair = [](const Json& e) {
      return e.is_array() && e.size() == 2 && e[0].is_number_unsigned() && e[1].is_number_unsigned();
    };
    if (!updates->is_array() || !std::all_of(updates->begin(), updates->end(), is_pair))
      head_.fail("updates", "an array of pairs [old, next]");
    std::set<ExprId> seen;
    for (const Json& pair : *updates) {
      const auto id = [&](std::size_t i) {
        return value("'updates'",
                     static_cast<std::uint32_t>(std::min<std::uint64_t>(pair[i].get<std::uint64_t>(), program.size())));
      };
      const Expr old = id(0), next = id(1);
      const Node& node = program.node(old.id);
      if (node.as<Input>() == nullptr || old.shape() != next.shape() || old.dtype() != next.dtype() ||
          !seen.insert(old.id).second || !seen.insert(next.id).second)
        refuse(fmt::format("'{}' is updated by '{}'", node.name, program.node(next.id).name),
               "inputs and values of the same shape and dtype, each once");
      program.mark_update(old, next);
    }
  }

  const std::string& where_;
  const JsonFields& head_;
  RunnableProgram result_;
  std::set<std::string> names_;
  bool formation_missing_ = false;  // the expression before this one is a partial result
};

// Ops that the program lowers to, or more than `most`. Lowering itself has no limit, and a file may ask for any number
// of blocks.
std::size_t count_ops(const RunnableProgram& p, std::size_t most) {
  const std::vector<char> needed = live(*p.program), updated = p.program->updated_inputs();
  std::size_t count = 0;
  for (ExprId id = 0; id < p.program->size() && count <= most; ++id) {
    const Node& node = p.program->node(id);
    const bool resident = node.as<Input>() != nullptr && !updated[id];
    const bool skipped = p.options.skip_single_formations && node.as<Formation>() != nullptr &&
                         product(p.plan[id]) == product(p.plan[node.inputs[0]]);
    if (needed[id] && !resident && !skipped) count += static_cast<std::size_t>(product(p.plan[id]));
  }
  return count;
}

void check_same_graph(const Graph& lowered, const Graph& graph) {
  const auto refuse = [&](const std::string& found, const std::string& required) {
    throw InputError(fmt::format("lowers to another graph: {}; required {}", found, required));
  };
  const auto compare = [&](const char* what, std::size_t found, std::size_t required) {
    if (found != required) refuse(fmt::format("{} {}", found, what), std::to_string(required));
  };
  compare("ops", lowered.op_count(), graph.op_count());
  compare("tensors", lowered.tensor_count(), graph.tensor_count());
  for (OpId op = 0; op < graph.op_count(); ++op)
    if (lowered.name(op) != graph.name(op))
      refuse(fmt::format("op {} is '{}'", op, lowered.name(op)), fmt::format("'{}'", graph.name(op)));
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    if (lowered.producer(tensor) != graph.producer(tensor) || lowered.bytes(tensor) != graph.bytes(tensor) ||
        !std::ranges::equal(lowered.consumers(tensor), graph.consumers(tensor)))
      refuse(fmt::format("tensor {} has {} bytes from '{}' for {} ops", tensor, lowered.bytes(tensor),
                         lowered.name(lowered.producer(tensor)), lowered.consumers(tensor).size()),
             fmt::format("{} bytes from '{}' for the {} ops of the file", graph.bytes(tensor),
                         graph.name(graph.producer(tensor)), graph.consumers(tensor).size()));
  }
  for (OpId op = 0; op < graph.op_count(); ++op)
    if (!std::ranges::equal(lowered.inputs(op), graph.inputs(op)))
      refuse(fmt::format("op '{}' reads its inputs in another order", graph.name(op)), "that of the file");
}

}  // namespace

std::string program_to_json(const Program& program, const Plan& plan, const LowerOptions& options) {
  Json file = {{"version", kVersion}, {"costs", to_string(options.costs)}, {"outputs", program.outputs()}};
  if (options.skip_single_formations) file["skip_single_formations"] = true;
  if (options.costs == CostMode::seconds)
    file["speeds"] = {{"flops_per_second", options.speeds.flops_per_second},
                      {"memory_bytes_per_second", options.speeds.memory_bytes_per_second},
                      {"link_bytes_per_second", options.speeds.link_bytes_per_second},
                      {"latency", options.speeds.latency},
                      {"overhead", options.speeds.overhead}};
  for (const Program::Update& update : program.updates()) file["updates"].push_back({update.old, update.next});
  file["expressions"] = Json::array();
  for (ExprId id = 0; id < program.size(); ++id) {
    if (program.node(id).as<Stencil>() != nullptr) return {};
    file["expressions"].push_back(expression_to_json(program.node(id), plan[id]));
  }
  return file.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RunnableProgram load_program(const std::string& where, std::string_view text, const Graph& graph) {
  const std::string what = where + ": program";
  const Json file = formats::parse_json(what, text, {});
  RunnableProgram result = Reader(what, JsonFields(what, file)).read();
  try {
    check(*result.program, result.plan);
    if (const std::size_t ops = count_ops(result, graph.op_count()); ops != graph.op_count())
      throw InputError(fmt::format("lowers to {}{} ops; required those of the graph, {}",
                                   ops > graph.op_count() ? "at least " : "", ops, graph.op_count()));
    result.options.title = graph.title();
    result.lowered = lower(*result.program, result.plan, result.options);
    check_same_graph(result.lowered.graph, graph);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", what, error.what()));
  }
  return result;
}

}  // namespace doppler::program
