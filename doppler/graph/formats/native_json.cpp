#include "doppler/graph/formats/native_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"

namespace doppler {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr std::string_view kFormat = "doppler-graph";
constexpr int kVersion = 1;
constexpr std::string_view kNever = "never";  // JSON has no infinity
const OpSpec kDefault;

// ---- reading ----

std::map<std::string, Seconds> read_times(const JsonFields& op) {
  std::map<std::string, Seconds> times;
  const Json* given = op.find("times");
  if (given == nullptr) return times;
  if (!given->is_object()) op.fail("times", "an object with seconds by device type");
  for (const auto& [type, time] : given->items()) {
    if (!time.is_number() && time != kNever)
      op.fail("times", fmt::format("a number of seconds, or \"{}\", for each device type", kNever));
    times[type] = time.is_number() ? time.get<Seconds>() : std::numeric_limits<Seconds>::infinity();
  }
  return times;
}

// Tensors and input orders wait until all ops are known: the file may list them in any order.
struct PendingTensor {
  std::uint32_t producer;
  Bytes bytes;
  std::optional<Seconds> transfer;
  std::vector<std::uint32_t> shape, consumers;
};

class NativeReader {
 public:
  explicit NativeReader(const std::string& where) : where_(where), builder_(where) {}

  LoadedGraph read(std::string_view content) {
    const formats::JsonSection sections[] = {
        {"ops", [this](std::size_t index, const Json& element) { read_op(index, element); }},
        {"tensors", [this](std::size_t index, const Json& element) { read_tensor(index, element); }}};
    const Json file = formats::parse_json(where_, content, sections);
    read_head(JsonFields(where_, file));
    for (std::size_t i = 0; i < tensors_.size(); ++i) add_tensor(i);
    for (auto& [op, inputs] : input_orders_) builder_.set_input_order(op, std::move(inputs));
    const Json* program = JsonFields(where_, file).find("program");
    return {std::move(builder_).build(), "native", {}, program == nullptr ? "" : program->dump()};
  }

 private:
  void read_head(const JsonFields& head) {
    if (head.string_or("format", "") != kFormat) head.fail("format", fmt::format("\"{}\"", kFormat));
    const Json* version = head.find("version");
    if (version == nullptr || *version != kVersion) head.fail("version", std::to_string(kVersion));
    head.refuse_other_keys({"format", "version", "title", "unitless", "ops", "tensors", "program"});
    for (const char* section : {"ops", "tensors"})
      if (head.find(section) != nullptr && !head.find(section)->is_array()) head.fail(section, "an array");
    if (const Json* program = head.find("program"); program != nullptr && !program->is_object())
      head.fail("program", "an object");
    builder_.set_title(head.string_or("title", ""));
    const Json* unitless = head.find("unitless");
    if (unitless != nullptr && !unitless->is_boolean()) head.fail("unitless", "true or false");
    builder_.set_unitless(unitless != nullptr && unitless->get<bool>());
  }

  void read_op(std::size_t index, const Json& element) {
    const JsonFields fields(fmt::format("{}: op {}", where_, index), element);
    fields.refuse_other_keys({"name", "kind", "dtype", "flops", "bytes_read", "bytes_written", "parameter_bytes",
                              "times", "group", "inputs"});
    OpSpec op;
    op.name = fields.string_or("name", "");
    op.kind = fields.string_or("kind", kDefault.kind);
    op.dtype = fields.string_or("dtype", kDefault.dtype);
    op.flops = fields.number_or("flops", kDefault.flops);
    op.bytes_read = fields.bytes_or("bytes_read", kDefault.bytes_read);
    op.bytes_written = fields.bytes_or("bytes_written", kDefault.bytes_written);
    op.parameter_bytes = fields.bytes_or("parameter_bytes", kDefault.parameter_bytes);
    op.explicit_times = read_times(fields);
    op.group = fields.string_or("group", kDefault.group);
    if (fields.find("inputs") != nullptr) input_orders_.emplace_back(builder_.op_count(), fields.indices("inputs"));
    builder_.add_op(std::move(op));
  }

  void read_tensor(std::size_t index, const Json& element) {
    const JsonFields fields(fmt::format("{}: tensor {}", where_, index), element);
    fields.refuse_other_keys({"producer", "bytes", "shape", "transfer", "consumers"});
    std::optional<Seconds> transfer;
    if (fields.find("transfer") != nullptr) transfer = fields.number("transfer");
    tensors_.push_back({fields.index("producer"), fields.bytes_or("bytes", 0), transfer, fields.indices("shape"),
                        fields.indices("consumers")});
  }

  void add_tensor(std::size_t index) {
    const PendingTensor& tensor = tensors_[index];
    check_op(index, "produced", tensor.producer);
    const TensorId id = builder_.add_tensor(tensor.producer, tensor.bytes, tensor.transfer);
    builder_.set_shape(id, tensor.shape);
    for (const std::uint32_t consumer : tensor.consumers) {
      check_op(index, "read", consumer);
      builder_.add_consumer(id, consumer);
    }
  }

  void check_op(std::size_t tensor, const char* verb, std::uint32_t op) const {
    if (op >= builder_.op_count())
      throw InputError(fmt::format("{}: tensor {} is {} by op {}; required an index below {}, the number of ops",
                                   where_, tensor, verb, op, builder_.op_count()));
  }

  const std::string& where_;
  GraphBuilder builder_;
  std::vector<PendingTensor> tensors_;
  std::vector<std::pair<OpId, std::vector<TensorId>>> input_orders_;
};

// ---- writing ----

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  std::string write(std::string_view program) {
    print("{{\"format\":\"{}\",\"version\":{},\n\"title\":{}", kFormat, kVersion, quoted(graph_.title()));
    if (graph_.unitless()) print(",\"unitless\":true");
    print(",\n\"ops\":[");
    for (OpId op = 0; op < graph_.op_count(); ++op) write_op(op);
    print("\n],\n\"tensors\":[");
    for (TensorId tensor = 0; tensor < graph_.tensor_count(); ++tensor) write_tensor(tensor);
    print("{}]", graph_.tensor_count() > 0 ? "\n" : "");
    if (!program.empty()) print(",\n\"program\":{}", program);
    print("}}\n");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  // JSON cannot carry a name that is not UTF-8: its bad bytes become replacement characters.
  static std::string quoted(const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // ,"key": in front of every field but the first.
  void key(std::string_view name) {
    print("{}\"{}\":", first_field_ ? "" : ",", name);
    first_field_ = false;
  }
  template <typename T>
  void number_unless(std::string_view name, T value, T fallback) {
    if (value == fallback) return;
    key(name);
    print("{}", value);  // the shortest text that reads back as the same number
  }
  void string_unless(std::string_view name, const std::string& value, const std::string& fallback) {
    if (value == fallback) return;
    key(name);
    text_ += quoted(value);
  }

  void write_op(OpId op) {
    print("{}{{", op == 0 ? "\n" : ",\n");
    first_field_ = true;
    string_unless("name", graph_.name(op), fmt::format("op{}", op));
    string_unless("kind", graph_.kind(op), kDefault.kind);
    string_unless("dtype", graph_.dtype(op), kDefault.dtype);
    number_unless("flops", graph_.flops(op), kDefault.flops);
    number_unless("bytes_read", graph_.bytes_read(op), kDefault.bytes_read);
    number_unless("bytes_written", graph_.bytes_written(op), kDefault.bytes_written);
    number_unless("parameter_bytes", graph_.parameter_bytes(op), kDefault.parameter_bytes);
    write_times(op);
    if (graph_.group(op) != Graph::kNoGroup) string_unless("group", graph_.group_name(graph_.group(op)), "");
    const auto inputs = graph_.inputs(op);
    if (!std::is_sorted(inputs.begin(), inputs.end())) {
      key("inputs");
      print("[{}]", fmt::join(inputs, ","));
    }
    print("}}");
  }

  void write_times(OpId op) {
    bool any = false;
    for (std::size_t column = 0; column < graph_.cost_types().size(); ++column) {
      const Seconds time = graph_.explicit_time(op, column);
      if (std::isnan(time)) continue;
      if (!any) key("times");
      print("{}{}:", any ? "," : "{", quoted(graph_.cost_types()[column]));
      if (std::isinf(time))
        print("\"{}\"", kNever);
      else
        print("{}", time);
      any = true;
    }
    if (any) print("}}");
  }

  void write_tensor(TensorId tensor) {
    print("{}{{", tensor == 0 ? "\n" : ",\n");
    first_field_ = true;
    key("producer");
    print("{}", graph_.producer(tensor));
    number_unless("bytes", graph_.bytes(tensor), Bytes{0});
    if (!graph_.shape(tensor).empty()) {
      key("shape");
      print("[{}]", fmt::join(graph_.shape(tensor), ","));
    }
    if (const auto transfer = graph_.explicit_transfer(tensor)) {
      key("transfer");
      print("{}", *transfer);
    }
    if (!graph_.consumers(tensor).empty()) {
      key("consumers");
      print("[{}]", fmt::join(graph_.consumers(tensor), ","));
    }
    print("}}");
  }

  const Graph& graph_;
  std::string text_;
  bool first_field_ = true;
};

}  // namespace

LoadedGraph parse_native_json(const std::string& where, std::string_view content) {
  return NativeReader(where).read(content);
}

std::string graph_to_json(const Graph& graph, std::string_view program) { return Writer(graph).write(program); }

}  // namespace doppler
