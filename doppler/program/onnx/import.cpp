#include "doppler/program/onnx/import.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/mapped_file.h"
#include "doppler/program/onnx/make_runnable.h"
#include "doppler/program/onnx/model_to_program.h"
#include "doppler/program/onnx/rewrite/rewrite.h"

namespace doppler::program {
namespace {

// Once views are looked through, a value is the output of this op, or of none (kNone).
struct Source {
  ValueId value = kNone;
  std::uint32_t op = kNone;
};
Source source_of(const Reading& reading, ValueId value) {
  while (true) {
    const std::uint32_t op = reading.values[value].producer;
    if (op == kNone || !reading.ops[op].view) return {value, op};
    value = reading.ops[op].inputs[0];
  }
}

std::string dtype_of(const Reading& reading, const ModelOp& op) {
  const auto element = [&](const std::vector<ValueId>& ids) {
    return ids.empty() || ids[0] == kNone ? 0 : element_of(reading.values[ids[0]].type);
  };
  const bool by_output = op.cost.macs == 0 && is_float(element(op.outputs));
  const std::int32_t first = element(by_output ? op.outputs : op.inputs);
  return dtype_name(first != 0 ? first : element(op.outputs));
}

class GraphOfReading {
 public:
  explicit GraphOfReading(const Reading& reading)
      : reading_(reading), builder_(reading.where), op_of_(reading.ops.size(), kNone) {}

  Graph build() {
    builder_.set_title(reading_.where);
    for (std::uint32_t i = 0; i < reading_.ops.size(); ++i)
      if (!reading_.ops[i].view) add_op(i);
    if (builder_.op_count() == 0)
      throw InputError(fmt::format("{}: every node folds away; required one that computes on data", reading_.where));
    add_tensors();
    return std::move(builder_).build();
  }

  const std::vector<OpId>& op_of() const { return op_of_; }  // by op of the reading; kNone for views

 private:
  void add_op(std::uint32_t index) {
    const ModelOp& op = reading_.ops[index];
    OpSpec spec;
    const unsigned before = names_[op.name]++;
    spec.name = before == 0 ? op.name : fmt::format("{}#{}", op.name, before + 1);
    spec.kind = kind_of(*op.rules, *op.node);
    spec.dtype = dtype_of(reading_, op);
    spec.flops = op.cost.flops;
    spec.bytes_read = op.cost.read;
    spec.bytes_written = op.cost.written;
    spec.parameter_bytes = resident(op);
    op_of_[index] = builder_.add_op(std::move(spec));
  }

  // Returns the bytes of parameters and of data that is fed in; each counts once however often the op reads it.
  Bytes resident(const ModelOp& op) const {
    Bytes total = 0;
    std::vector<ValueId> seen;
    for (const ValueId id : op.inputs) {
      if (id == kNone) continue;
      const auto [value, producer] = source_of(reading_, id);
      if (producer != kNone || std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
      seen.push_back(value);
      const ModelValue& source = reading_.values[value];
      total += source.is_static ? source.stored : bytes_of(source.type);
    }
    return total;
  }

  void add_tensors() {
    std::vector<std::vector<OpId>> readers(reading_.values.size());
    for (std::uint32_t i = 0; i < reading_.ops.size(); ++i) {
      if (reading_.ops[i].view) continue;
      for (const ValueId id : reading_.ops[i].inputs) {
        if (id == kNone) continue;
        const auto [value, producer] = source_of(reading_, id);
        if (producer == kNone) continue;
        std::vector<OpId>& list = readers[value];
        if (std::find(list.begin(), list.end(), op_of_[i]) == list.end()) list.push_back(op_of_[i]);
      }
    }
    for (std::uint32_t i = 0; i < reading_.ops.size(); ++i) {
      if (reading_.ops[i].view) continue;
      for (const ValueId id : reading_.ops[i].outputs) {
        if (id == kNone) continue;
        const TensorId tensor = builder_.add_tensor(op_of_[i], bytes_of(reading_.values[id].type));
        if (const auto dims = dims_of(reading_.values[id].type))
          builder_.set_shape(tensor, {dims->begin(), dims->end()});
        for (const OpId reader : readers[id]) builder_.add_consumer(tensor, reader);
      }
    }
  }

  const Reading& reading_;
  GraphBuilder builder_;
  std::vector<OpId> op_of_;
  std::unordered_map<std::string, unsigned> names_;
};

// A model of views alone has no other op: to be run, they are copies.
void make_views_run(Reading& reading) {
  if (std::any_of(reading.ops.begin(), reading.ops.end(), [](const ModelOp& op) { return !op.view; })) return;
  for (ModelOp& op : reading.ops) {
    op.view = false;
    op.cost.read = op.cost.written = bytes_of(reading.values[op.outputs[0]].type);
  }
}

OnnxTotals totals_of(Reading& reading) {
  OnnxTotals totals;
  totals.nodes = reading.ops_of_node.size();
  for (const Reading::Range& range : reading.ops_of_node) {
    const auto runs = [](const ModelOp& op) { return !op.view; };
    totals.folded_nodes += std::none_of(reading.ops.begin() + range.first, reading.ops.begin() + range.last, runs);
  }
  for (const ModelOp& op : reading.ops) {
    totals.flops += op.cost.flops;
    totals.macs += op.cost.macs;
    for (const ValueId id : op.inputs) {
      if (id == kNone || !reading.values[id].is_static || !is_weight_type(element_of(reading.values[id].type)))
        continue;
      for (const std::uint32_t parameter : reading.values[id].parameters) reading.parameters[parameter].used = true;
    }
  }
  for (const ModelParameter& parameter : reading.parameters) {
    if (!parameter.used) continue;
    totals.parameters += parameter.elements;
    totals.parameter_bytes += parameter.bytes;
  }
  return totals;
}

std::vector<OpId> ops_of_nodes(const Reading& reading, const std::vector<OpId>& op_of) {
  const auto& nodes = reading.model.graph().node();
  std::vector<OpId> result(reading.ops_of_node.size(), kNone);
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::uint32_t op = reading.ops_of_node[i].first; op < reading.ops_of_node[i].last && result[i] == kNone;
         ++op) {
      const std::uint32_t runs = reading.ops[op].view ? source_of(reading, reading.ops[op].outputs[0]).op : op;
      if (runs != kNone) result[i] = op_of[runs];
    }
  // What is left goes where it is needed first.
  std::unordered_map<std::string, OpId> wanted;
  for (std::size_t i = result.size(); i-- > 0;) {
    const onnx::NodeProto& node = nodes[static_cast<int>(i)];
    for (const std::string& name : node.output())
      if (const auto found = wanted.find(name); result[i] == kNone && found != wanted.end()) result[i] = found->second;
    if (result[i] == kNone) result[i] = 0;
    for (const std::string& name : names_read(node)) wanted[name] = result[i];
  }
  return result;
}

std::vector<OnnxParameter> parameters_of(const Reading& reading, const std::vector<OpId>& op_of) {
  std::vector<OnnxParameter> all;
  for (const ModelParameter& parameter : reading.parameters) all.push_back({parameter.name, parameter.bytes, {}});
  for (std::size_t i = 0; i < reading.ops.size(); ++i) {
    if (reading.ops[i].view) continue;
    for (const ValueId id : reading.ops[i].inputs) {
      if (id == kNone) continue;
      for (const std::uint32_t parameter : reading.values[source_of(reading, id).value].parameters) {
        std::vector<OpId>& readers = all[parameter].readers;
        if (readers.empty() || readers.back() != op_of[i]) readers.push_back(op_of[i]);
      }
    }
  }
  std::erase_if(all, [](const OnnxParameter& parameter) { return parameter.readers.empty(); });
  for (OnnxParameter& parameter : all) {
    std::sort(parameter.readers.begin(), parameter.readers.end());
    parameter.readers.erase(std::unique(parameter.readers.begin(), parameter.readers.end()), parameter.readers.end());
  }
  return all;
}

// Returns, for the nodes of a model before it was rewritten, the ops that run them now.
std::vector<OpId> ops_before(const std::vector<int>& place, const std::vector<OpId>& op_of_node) {
  std::vector<OpId> result;
  for (const int node : place) result.push_back(node < 0 ? 0 : op_of_node[static_cast<std::size_t>(node)]);
  return result;
}

void annotate(onnx::NodeProto& node, const std::string& key, const std::string& device) {
  onnx::StringStringEntryProto property;
  property.set_key(key);
  property.set_value(device);
  // NodeProto.metadata_props came with IR version 10; libonnx 1.12 carries the field without knowing its name.
  constexpr int kMetadataProps = 9;
  google::protobuf::UnknownFieldSet& fields = *node.GetReflection()->MutableUnknownFields(&node);
  for (int i = fields.field_count(); i-- > 0;) {  // an earlier export
    onnx::StringStringEntryProto old;
    const auto& field = fields.field(i);
    if (field.number() == kMetadataProps && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        old.ParseFromString(field.length_delimited()) && old.key() == property.key())
      fields.DeleteSubrange(i, 1);
  }
  fields.AddLengthDelimited(kMetadataProps, property.SerializeAsString());
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g())
      for (onnx::NodeProto& inside : *attribute.mutable_g()->mutable_node()) annotate(inside, key, device);
    for (onnx::GraphProto& body : *attribute.mutable_graphs())
      for (onnx::NodeProto& inside : *body.mutable_node()) annotate(inside, key, device);
  }
}

onnx::ModelProto parsed(std::string_view content) {
  onnx::ModelProto model;
  DOPPLER_CHECK(model.ParseFromArray(content.data(), static_cast<int>(content.size())), "a model that was read before");
  return model;
}

void require_ops(const Program& program, const std::string& where) {
  if (program.size() == program.weights().size())
    throw InputError(fmt::format("{}: every node folds away; required one that computes on data", where));
}

// The model as it is, cut for devices with memories of their own, by its costs alone: also where no kernel follows.
ImportedModel import_costed_cut(Reading reading, const OnnxTotals& totals, const OnnxOptions& options) {
  Program program;
  model_to_program(reading, program);
  require_ops(program, reading.where);
  const Plan plan = decompose(program, options.decompose)[0].plan;
  Lowered lowered = lower(program, plan, {.skip_single_formations = true, .title = reading.where});
  return {std::move(lowered.graph), totals, std::move(reading.warnings), {}, {}, {}, nullptr};
}

// What the op of a lowered graph is in the model, whose op has the number `op`.
model::RunnableModel::Block block_of(const Program& program, const Kernel& kernel, const ModelOp& of, OpId op,
                                     std::uint32_t output) {
  model::RunnableModel::Block block{.op = op};
  if (output == kNone) return block;
  const Node& node = program.node(kernel.expr);
  block.output = output;
  block.region = kernel.block;
  // The operands of a rule are the first inputs that are there, in order.
  std::size_t operand = 0;
  for (const ValueId input : of.inputs) {
    if (operand == node.inputs.size()) break;
    block.inputs.emplace_back();
    if (input == kNone) continue;
    block.inputs.back() = operand_region(node, operand, program.node(node.inputs[operand]).shape, kernel.block);
    ++operand;
  }
  return block;
}

// The model cut in blocks that kernels compute.
ImportedModel import_runnable_cut(Reading reading, const OnnxTotals& totals, std::vector<RewriteCount> passes,
                                  const OnnxOptions& options) {
  Program program;
  const std::vector<ExprOrigin> origins = model_to_runnable_program(reading, program);
  require_ops(program, reading.where);
  const Plan plan = decompose(program, options.decompose)[0].plan;
  Lowered lowered = lower(program, plan, {.skip_single_formations = true, .title = reading.where});
  std::vector<std::string> warnings = std::move(reading.warnings);
  std::shared_ptr<const model::RunnableModel> runnable;
  if (options.runnable && options.one_memory) {
    std::vector<OpId> op_of(reading.ops.size(), kNone);
    OpId count = 0;
    for (std::size_t i = 0; i < op_of.size(); ++i)
      if (!reading.ops[i].view) op_of[i] = count++;
    std::vector<model::RunnableModel::Block> blocks;
    for (const Kernel& kernel : lowered.kernels) {
      const ExprOrigin& origin = origins[kernel.expr];
      const ModelOp& op = reading.ops[origin.op];
      const bool whole = product(plan[kernel.expr]) == 1 && !op.rules->traits.each_output;
      blocks.push_back(block_of(program, kernel, op, op_of[origin.op], whole ? kNone : origin.output));
    }
    runnable = make_runnable(std::move(reading), op_of, std::move(blocks), options.file);
  }
  return {std::move(lowered.graph), totals, std::move(warnings), {}, {}, std::move(passes), std::move(runnable)};
}

}  // namespace

bool looks_like_onnx(std::string_view content) {
  constexpr char kIrVersion = 0x08;  // field 1, a varint
  return content.size() >= 2 && content[0] == kIrVersion && content[1] >= 0 && content[1] < 0x40;
}

ImportedModel import_onnx(const std::string& where, std::string_view content, const OnnxOptions& options) {
  Reading reading = read_model(where, content, options.dims, options.file != nullptr);
  OnnxTotals totals = totals_of(reading);
  if (options.shard > 0 && !options.one_memory && !options.rewrite)
    return import_costed_cut(std::move(reading), totals, options);
  Rewritten rewritten;
  if (options.rewrite) {
    rewritten = rewrite(reading);
    std::vector<std::string> warnings = std::move(reading.warnings);
    reading = read_again(where, std::move(reading.model), options.dims, std::move(reading.weights));
    reading.warnings = std::move(warnings);
    totals.flops = totals_of(reading).flops;
  }
  if (options.runnable && (options.shard == 0 || options.one_memory)) make_views_run(reading);
  if (options.shard > 0) return import_runnable_cut(std::move(reading), totals, std::move(rewritten.passes), options);
  GraphOfReading builder(reading);
  Graph graph = builder.build();
  std::vector<OpId> op_of_node = ops_of_nodes(reading, builder.op_of());
  if (options.rewrite) op_of_node = ops_before(rewritten.place, op_of_node);
  std::vector<std::string> warnings = std::move(reading.warnings);
  std::shared_ptr<const model::RunnableModel> runnable;
  std::vector<OnnxParameter> parameters = parameters_of(reading, builder.op_of());
  if (options.runnable) runnable = make_runnable(std::move(reading), builder.op_of(), {}, options.file);
  return {std::move(graph),      totals,
          std::move(warnings),   std::move(op_of_node),
          std::move(parameters), std::move(rewritten.passes),
          std::move(runnable)};
}

std::string annotate_onnx(std::string_view content, const std::vector<std::string>& device_of_node,
                          const std::string& key, const std::map<std::string, std::string>& model_properties) {
  onnx::ModelProto model = parsed(content);
  for (int i = 0; i < model.graph().node_size(); ++i)
    annotate(*model.mutable_graph()->mutable_node(i), key, device_of_node[static_cast<std::size_t>(i)]);
  for (const auto& [name, value] : model_properties) {
    onnx::StringStringEntryProto* property = nullptr;
    for (onnx::StringStringEntryProto& old : *model.mutable_metadata_props())
      if (old.key() == name) property = &old;
    if (property == nullptr) property = model.add_metadata_props();
    property->set_key(name);
    property->set_value(value);
  }
  return model.SerializeAsString();
}

}  // namespace doppler::program
