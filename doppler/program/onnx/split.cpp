#include "doppler/program/onnx/split.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <onnx/checker.h>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/program/onnx/external_data.h"
#include "doppler/program/onnx/part_plan.h"

namespace doppler::program {
namespace {

using TensorVisit = std::function<void(onnx::TensorProto&)>;
void visit_tensors(onnx::NodeProto& node, const TensorVisit& visit);

// Recursion is as deep as bodies nest, which protobuf's parser bounds.
void visit_tensors(onnx::GraphProto& graph, const TensorVisit& visit) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) visit(tensor);
  for (onnx::NodeProto& node : *graph.mutable_node()) visit_tensors(node, visit);
}
void visit_tensors(onnx::NodeProto& node, const TensorVisit& visit) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) visit(*attribute.mutable_t());
    for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor);
    if (attribute.has_g()) visit_tensors(*attribute.mutable_g(), visit);
    for (onnx::GraphProto& body : *attribute.mutable_graphs()) visit_tensors(body, visit);
  }
}

// The data of a part that is not in the part itself.
class DataFile {
 public:
  explicit DataFile(std::string path) : path_(std::move(path)) {}

  // Appends the data and makes the tensor point to it.
  void take(onnx::TensorProto& tensor, std::string_view bytes) {
    constexpr std::size_t kAlignment = 4096;  // a page, so that whoever maps the file gets aligned tensors
    if (!file_.is_open()) file_.open(path_, std::ios::binary | std::ios::trunc);
    const std::string padding((kAlignment - size_ % kAlignment) % kAlignment, '\0');
    if (!file_.is_open()) throw InputError(fmt::format("{}: cannot open; required a file to write", path_));
    file_ << padding << bytes;
    size_ += padding.size();
    tensor.clear_external_data();
    const auto say = [&](const char* key, std::string value) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(std::move(value));
    };
    say("location", std::filesystem::path(path_).filename().string());
    say("offset", std::to_string(size_));
    say("length", std::to_string(bytes.size()));
    size_ += bytes.size();
  }
  void close() {
    if (!file_.is_open()) return;
    file_.close();
    if (!file_) throw InputError(fmt::format("{}: cannot write; required space on the disk", path_));
  }

 private:
  std::string path_;
  std::ofstream file_;
  std::size_t size_ = 0;
};

class Splitter {
 public:
  Splitter(const Reading& reading, bool open_sizes, const std::vector<std::uint32_t>& device_of_node)
      : reading_(reading),
        graph_(reading.model.graph()),
        open_sizes_(open_sizes),
        plan_(plan_parts(reading.where, graph_, device_of_node)),
        data_(reading.where) {
    for (const auto& tensor : graph_.initializer()) initializers_[tensor.name()] = &tensor;
    for (const auto& tensor : graph_.sparse_initializer()) sparse_[tensor.values().name()] = &tensor;
    for (const auto& list : {&graph_.value_info(), &graph_.input(), &graph_.output()})
      for (const onnx::ValueInfoProto& info : *list) declared_[info.name()] = &info;
    for (const auto& input : graph_.input()) inputs_.insert(input.name());
    for (const auto& output : graph_.output()) outputs_.insert(output.name());
    find_flows();
  }

  PartsOfModel write(const std::string& directory) {
    PartsOfModel result;
    for (const auto& input : graph_.input())
      if (!has_default(input.name())) result.inputs.push_back(value_of(input.name()));
    for (const auto& output : graph_.output()) result.outputs.push_back(value_of(output.name()));
    const std::size_t digits = std::to_string(plan_.parts.size() - 1).size();
    for (std::size_t i = 0; i < plan_.parts.size(); ++i) {
      const std::string file = fmt::format("part{:0{}}.onnx", i, digits);
      result.parts.push_back(write_part(i, file, directory));
    }
    return result;
  }

 private:
  bool has_default(const std::string& name) const { return initializers_.contains(name) || sparse_.contains(name); }

  // What other parts read of each part, and what the model gives back.
  void find_flows() {
    leaves_.resize(plan_.parts.size());
    for (std::size_t i = 0; i < plan_.parts.size(); ++i)
      for (const int node : plan_.parts[i].nodes)
        for (const std::string& name : names_read(graph_.node(node)))
          if (const auto found = plan_.maker.find(name); found != plan_.maker.end() && found->second != i)
            leaves_[found->second].insert(name);
    for (const std::string& name : outputs_) {
      const auto found = plan_.maker.find(name);
      if (found != plan_.maker.end()) leaves_[found->second].insert(name);
      if (found == plan_.maker.end() && has_default(name)) leaves_.front().insert(name);  // a parameter comes out
    }
  }

  const onnx::TypeProto& read_type(const std::string& name) const {
    return reading_.values[reading_.names.at(name)].type;
  }

  PartValue value_of(const std::string& name) const {
    const onnx::TypeProto& type = read_type(name);
    PartValue value{.name = name, .dtype = dtype_name(element_of(type))};
    if (type.has_sequence_type()) value.dtype = "sequence";
    if (type.has_optional_type()) value.dtype = "optional";
    if (is_tensor(type)) value.shape = dims_of(type).value_or(Shape());
    value.bytes = bytes_of(type);
    const auto found = plan_.maker.find(name);
    value.from = found == plan_.maker.end() ? PartsOfModel::kModel : found->second;
    return value;
  }

  // How the file declares a tensor or, where it does not, what was found when it was read. Sizes that somebody gave for
  // placing hold for that only.
  onnx::ValueInfoProto info_of(const std::string& name) const {
    const auto found = declared_.find(name);
    if (found != declared_.end() && (!is_tensor(found->second->type()) || dims_of(found->second->type())))
      return *found->second;
    onnx::ValueInfoProto info;
    info.set_name(name);
    *info.mutable_type() = read_type(name);
    if (open_sizes_ && info.type().has_tensor_type())
      for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) dim.Clear();
    return info;
  }

  // The nodes that a part needs of those that depend on parameters alone, and everything that its nodes read.
  struct Needs {
    std::vector<int> shared;      // producers first
    std::set<std::string> names;  // in order, so that the same model gives the same bytes
  };
  Needs needs_of(const PartPlan::Part& part) const {
    Needs needs;
    std::set<int> wanted;
    std::vector<int> open = part.nodes;
    while (!open.empty()) {
      const int index = open.back();
      open.pop_back();
      for (const std::string& name : names_read(graph_.node(index))) {
        needs.names.insert(name);
        const auto found = plan_.shared.find(name);
        if (found != plan_.shared.end() && wanted.insert(found->second).second) open.push_back(found->second);
      }
    }
    for (const int index : plan_.order)
      if (wanted.contains(index)) needs.shared.push_back(index);
    return needs;
  }

  PartOfModel write_part(std::size_t number, const std::string& file, const std::string& directory) {
    const PartPlan::Part& plan = plan_.parts[number];
    const Needs needs = needs_of(plan);
    PartOfModel part{.device = plan.device, .level = plan.level, .inputs = {}, .outputs = {}, .file = file};
    onnx::ModelProto model = without_graph();
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name(fmt::format("{}.{}", graph_.name().empty() ? "model" : graph_.name(), number));
    for (const std::vector<int>& nodes : {needs.shared, plan.nodes})
      for (const int index : nodes) *graph.add_node() = graph_.node(index);
    part.nodes = static_cast<std::size_t>(graph.node_size());
    std::set<std::string> names = needs.names;
    for (const std::string& name : leaves_[number])
      if (has_default(name)) names.insert(name);
    for (const std::string& name : names) add_source(name, number, part, graph);
    for (const std::string& name : leaves_[number]) {
      part.outputs.push_back(value_of(name));
      *graph.add_output() = info_of(name);
    }
    add_facts(names, graph);
    const std::string path = directory + "/" + file;
    move_data(model, path + ".data");
    write_file_atomically(path, model.SerializeAsString());
    return part;
  }

  // Where a name that a part reads comes from: a parameter, the model's inputs, or another part.
  void add_source(const std::string& name, std::size_t number, PartOfModel& part, onnx::GraphProto& graph) const {
    if (inputs_.contains(name)) *graph.add_input() = info_of(name);
    if (const auto found = initializers_.find(name); found != initializers_.end()) {
      *graph.add_initializer() = *found->second;
      part.parameter_bytes += bytes_of(read_type(name));
    } else if (const auto sparse = sparse_.find(name); sparse != sparse_.end()) {
      *graph.add_sparse_initializer() = *sparse->second;
      part.parameter_bytes += bytes_of(read_type(name));
    } else if (inputs_.contains(name)) {
      part.inputs.push_back(value_of(name));
    } else if (const auto maker = plan_.maker.find(name); maker != plan_.maker.end() && maker->second != number) {
      part.inputs.push_back(value_of(name));
      *graph.add_input() = info_of(name);
    }
  }

  onnx::ModelProto without_graph() const {
    onnx::ModelProto model;
    model.set_ir_version(reading_.model.ir_version());
    *model.mutable_opset_import() = reading_.model.opset_import();
    *model.mutable_functions() = reading_.model.functions();
    *model.mutable_metadata_props() = reading_.model.metadata_props();
    model.set_producer_name("doppler");
    return model;
  }

  // Declarations of tensors within a part, and how they are quantised.
  void add_facts(const std::set<std::string>& read, onnx::GraphProto& graph) const {
    std::unordered_set<std::string> made;
    for (const onnx::NodeProto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
    for (const onnx::ValueInfoProto& info : graph_.value_info())
      if (made.contains(info.name()) && !outputs_.contains(info.name())) {
        const bool leaves = std::any_of(graph.output().begin(), graph.output().end(),
                                        [&](const auto& output) { return output.name() == info.name(); });
        if (!leaves) *graph.add_value_info() = info;
      }
    for (const auto& annotation : graph_.quantization_annotation())
      if (made.contains(annotation.tensor_name()) || read.contains(annotation.tensor_name()))
        *graph.add_quantization_annotation() = annotation;
  }

  void move_data(onnx::ModelProto& model, const std::string& path) {
    DataFile file(path);
    const auto move = [&](onnx::TensorProto& tensor) {
      if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
      file.take(tensor, data_.bytes(tensor, fmt::format("{}: tensor '{}'", reading_.where, tensor.name())));
    };
    visit_tensors(*model.mutable_graph(), move);
    for (onnx::FunctionProto& function : *model.mutable_functions())
      for (onnx::NodeProto& node : *function.mutable_node()) visit_tensors(node, move);
    file.close();
  }

  const Reading& reading_;
  const onnx::GraphProto& graph_;
  const bool open_sizes_;
  PartPlan plan_;
  ExternalData data_;
  std::unordered_map<std::string, const onnx::TensorProto*> initializers_;
  std::unordered_map<std::string, const onnx::SparseTensorProto*> sparse_;
  std::unordered_map<std::string, const onnx::ValueInfoProto*> declared_;
  std::set<std::string> inputs_, outputs_;
  std::vector<std::set<std::string>> leaves_;
};

// What libonnx has against a model; empty: nothing.
std::string complaint_of(const std::function<void()>& check) {
  try {
    check();
    return {};
  } catch (const std::exception& error) {
    std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
}

// A part is valid if libonnx says so. Where it refuses a part and the whole model, too, it is too old for the model, or
// the model was not valid before: then it can say nothing, and its complaint about the whole is returned.
std::string check_parts(const Reading& reading, const PartsOfModel& parts, const std::string& directory) {
  for (const PartOfModel& part : parts.parts) {
    const std::string complaint = complaint_of([&] { onnx::checker::check_model(directory + "/" + part.file); });
    if (complaint.empty()) continue;
    const std::string whole = complaint_of([&] {
      if (reading.where == "-")
        onnx::checker::check_model(reading.model);
      else
        onnx::checker::check_model(reading.where);
    });
    DOPPLER_CHECK(!whole.empty(), "part '{}' of a valid model is not valid: {}", part.file, complaint);
    return whole;
  }
  return {};
}

}  // namespace

PartsOfModel split_onnx(const std::string& where, std::string_view content, const std::map<std::string, Index>& dims,
                        const std::vector<std::uint32_t>& device_of_node, const std::string& directory) {
  const Reading reading = read_model(where, content, dims);
  PartsOfModel parts = Splitter(reading, !dims.empty(), device_of_node).write(directory);
  parts.unchecked = check_parts(reading, parts, directory);
  return parts;
}

}  // namespace doppler::program
