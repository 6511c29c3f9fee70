#pragma once

#include "doppler/program/onnx/static_values.h"

namespace doppler::program {

// The names that a graph sees: its own, then those of the graph around it. Functions see nothing around them.
struct Scope {
  const Scope* outer = nullptr;
  const std::map<std::string, int>* opsets = nullptr;
  std::unordered_map<std::string, ValueId> values = {};
  std::unordered_map<std::string, const onnx::TypeProto*> declared = {};  // by value_info and outputs
  std::unordered_set<std::string> used = {};                              // names that are read, and outputs
  std::string prefix = {};                                                // comes before the names of ops

  // Returns the value of that name, nothing if there is none, and kNone for an absent argument of a function.
  std::optional<ValueId> find(const std::string& name) const;
  // Returns the version of the node's domain, 1 if none is imported.
  int opset(const onnx::NodeProto& node) const;
};

// Reads the graphs of a model, producers first, and fills a Reading.
class ModelReader {
 public:
  ModelReader(Reading& reading, const std::map<std::string, Index>& dims);
  void run();
  // Throws InputError if a size was given for a dimension that nothing has.
  void refuse_unused_dims() const;

 private:
  // These are in model_reader.cpp.
  void check_opsets();
  void bind_inputs(const onnx::GraphProto& graph, Scope& scope);
  void bind_initializers(const onnx::GraphProto& graph, Scope& scope);
  void declare(const onnx::GraphProto& graph, Scope& scope) const;
  void read_graph(const onnx::GraphProto& graph, Scope& scope, bool main);
  void read_node(const onnx::NodeProto& node, Scope& scope);
  void read_operator(const Operator& op, const onnx::NodeProto& node, Scope& scope);
  void bind_constant(const onnx::NodeProto& node, Scope& scope);
  void bind_static(const Operator& op, const onnx::NodeProto& node, const std::vector<ValueId>& inputs,
                   const std::vector<onnx::TypeProto>& types, Scope& scope);
  void add_static_op(const Operator& rules, const onnx::NodeProto& node, std::vector<ValueId> inputs,
                     std::vector<ValueId> outputs, const Scope& scope);
  void add_op(const Operator& rules, const onnx::NodeProto& node, std::vector<ValueId> inputs,
              const std::vector<onnx::TypeProto>& types, const OpCost& cost, Scope& scope);
  std::vector<ValueId> inputs_of(const onnx::NodeProto& node, const Scope& scope) const;
  NodeInputs facts_of(const std::vector<ValueId>& inputs) const;
  ValueId add_value(ModelValue value);
  std::uint32_t add_parameter(std::string name, const onnx::TypeProto& type);
  // Fills in sizes that --dim gives, for symbols and for "tensor:axis".
  void apply_dims(const std::string& name, onnx::TypeProto& type);
  Inferred infer(const Operator& op, const onnx::NodeProto& node, const std::vector<ValueId>& inputs,
                 const Scope& scope);
  void merge_declarations(const onnx::NodeProto& node, Inferred& inferred, const Scope& scope);
  // Computes what the shapes of the outputs depend on, where neither rules nor the file say them.
  void compute_types(const Operator& op, const onnx::NodeProto& node, Inferred& inferred,
                     const std::vector<ValueId>& inputs, const Scope& scope);
  bool compute_constants(const std::vector<ValueId>& inputs);
  void complete_types(const onnx::NodeProto& node, Inferred& inferred, const std::vector<ValueId>& inputs,
                      const Scope& scope);
  bool is_static(const Operator& op, const std::vector<ValueId>& inputs) const;
  std::optional<Index> given(const std::string& key);
  [[noreturn]] void refuse_unknown(const onnx::NodeProto& node, const std::string& tensor, const onnx::TypeProto& type,
                                   const onnx::TypeProto* declared, const std::string& complaint) const;
  void warn(std::string text) { reading_.warnings.push_back(reading_.where + ": " + std::move(text)); }

  // These are in control_flow.cpp.
  struct Body {
    OpCost cost;
    std::vector<ValueId> outputs;
    std::vector<ValueId> reads;  // what it takes from outside, and its own parameters
  };
  bool read_control_flow(const Operator& op, const onnx::NodeProto& node, Scope& scope);
  Body collapse(const onnx::NodeProto& node, const onnx::GraphProto& graph,
                const std::vector<onnx::TypeProto>& input_types, const Scope& scope);
  void read_if(const onnx::NodeProto& node, Scope& scope);
  void read_loop(const onnx::NodeProto& node, Scope& scope);
  void read_scan(const onnx::NodeProto& node, Scope& scope);
  void finish_control_flow(const onnx::NodeProto& node, std::vector<ValueId> inputs, const Body& body,
                           std::vector<onnx::TypeProto> types, Scope& scope);
  std::optional<Index> turns(const onnx::NodeProto& node, ValueId count);
  bool read_function(const onnx::NodeProto& node, Scope& scope);
  void bind_outputs(const onnx::NodeProto& node, const std::vector<ValueId>& outputs, Scope& scope) const;

  Reading& reading_;
  const std::map<std::string, Index>& dims_;
  std::set<std::string> dims_used_;
  std::map<std::string, int> opsets_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // by operator_name
  std::map<const onnx::FunctionProto*, std::map<std::string, int>> function_opsets_;
  std::map<std::string, std::size_t> unknown_operators_;
  std::size_t nodes_read_ = 0, depth_ = 0;
  StaticValues static_values_{reading_};
};

}  // namespace doppler::program
