#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/program/onnx/proto.h"

namespace doppler::program {

// Writes an ONNX model op by op, with the names that PyTorch's exporter gives. Internal to the zoo.
//
//   ModelWriter model("net", seed);
//   Value x = model.input("x", {1, 3, 224, 224});
//   {
//     const ModelWriter::Module module = model.in("conv1");
//     x = model.node("Relu", {x, …}, x.shape);           // node "/conv1/Relu"
//   }
//   model.output("y", x);
//   model.bytes();
class ModelWriter {
 public:
  struct Value {
    std::string name;
    Shape shape;
  };
  // Leaves the module at its end.
  class Module {
   public:
    explicit Module(ModelWriter& model) : model_(model) {}
    ~Module() { model_.path_.pop_back(); }
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

   private:
    ModelWriter& model_;
  };
  // How a weight is drawn, so that what is computed stays in the range of numbers.
  enum class Draw { normal, ones, zeros };
  using Attributes = std::vector<onnx::AttributeProto>;

  // With a seed, weights are drawn and written; without, they are inputs of the graph.
  ModelWriter(const std::string& name, std::optional<std::uint64_t> weights);

  // Everything until the end of the returned object belongs to this child of the module that is being written. A number
  // is the child of a list.
  Module in(const std::string& child);

  Value input(const std::string& name, const Shape& shape, onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT);
  void output(const std::string& name, const Value& value);
  // A parameter of the module; `deviation` is that of normal draws.
  Value weight(const std::string& name, const Shape& shape, Draw draw = Draw::normal, double deviation = 0.02);
  Value constant(const std::vector<Index>& values);
  Value constant(float value);
  Value constant(const Shape& shape, const std::vector<float>& values);
  // One node with one output.
  Value node(const std::string& op, const std::vector<Value>& inputs, const Shape& shape, Attributes attributes = {});

  // Several models are made of these. Each is a child module, but for the activations.
  Value linear(const std::string& name, const Value& x, Index width, bool bias = true);
  Value layer_norm(const std::string& name, const Value& x, float epsilon);
  Value gelu(const Value& x);
  Value reshape(const Value& x, const Shape& shape);
  Value transpose(const Value& x, const std::vector<Index>& order);
  Value matmul(const Value& a, const Value& b);
  Value add(const Value& a, const Value& b) { return node("Add", {a, b}, a.shape); }
  Value multiply(const Value& a, const Value& b) { return node("Mul", {a, b}, a.shape); }
  Value softmax(const Value& x);

  // Throws InputError if a tensor of this shape would make the file larger than its format allows. To be asked before
  // a large constant is made; weight() and constant() ask too.
  void check_room(const std::string& name, const Shape& shape) const;
  // The file.
  std::string bytes() const;

 private:
  std::string module_name() const;               // "layer1.0.conv1"
  std::string node_name(const std::string& op);  // "/layer1/layer1.0/conv1/Conv", unique
  std::string constant_name();
  onnx::TensorProto& initializer(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape);

  onnx::ModelProto model_;
  std::optional<std::uint64_t> weights_;
  std::uint64_t drawn_ = 0, constants_ = 0;
  std::vector<std::string> path_;
  std::map<std::string, int> used_;  // how often a node name was asked for
};

onnx::AttributeProto attribute(const std::string& name, Index value);
onnx::AttributeProto attribute(const std::string& name, float value);
onnx::AttributeProto attribute(const std::string& name, const std::vector<Index>& values);

}  // namespace doppler::program
