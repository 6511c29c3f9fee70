#include "tests/program/onnx/model_builder.h"

namespace doppler::program {
namespace {

class Exporter {
 public:
  Exporter(int batch, int positions, int width, int heads) : width_(width), heads_(heads) {
    b_.input("x", {batch, positions, width});
    b_.weight("two", {}).weight("epsilon", {}).weight("scale", {}).weight("root", {}).weight("one", {});
    b_.integers("zero", {0}).integers("index1", {1}).integers("heads", {heads}).integers("head", {width / heads});
    b_.integers("all", {width});
  }

  std::string run(int layers) {
    std::string x = "x";
    for (int i = 0; i < layers; ++i) {
      prefix_ = "/layers." + std::to_string(i) + "/";
      x = norm(op("Add", {x, attention(x)}), "norm1");
      x = norm(op("Add", {x, feed_forward(x)}), "norm2");
    }
    b_.output(x);
    return b_.bytes();
  }

 private:
  std::string op(const std::string& type, const std::vector<std::string>& inputs) {
    last_ = &b_.node(type, inputs, {prefix_ + type + "_" + std::to_string(next_++) + "_output_0"});
    last_->set_name(last_->output(0).substr(0, last_->output(0).size() - 9));
    return last_->output(0);
  }
  std::string transpose(const std::string& x, std::initializer_list<int> order) {
    const std::string y = op("Transpose", {x});
    set_ints(*last_, "perm", order);
    return y;
  }
  std::string weight(const std::string& name, const std::vector<int>& dims) {
    b_.weight(prefix_ + name, dims);
    return prefix_ + name;
  }
  std::string linear(const std::string& x, const std::string& name, int in, int out) {
    return op("Add", {op("MatMul", {x, weight(name + ".weight", {in, out})}), weight(name + ".bias", {out})});
  }
  // [batch, positions, width] -> [batch, positions, heads, width / heads], by sizes that are computed in the graph.
  std::string split(const std::string& x) {
    const std::string shape = op("Shape", {x});
    const std::string batch = op("Gather", {shape, "zero"}), positions = op("Gather", {shape, "index1"});
    const std::string target = op("Concat", {batch, positions, "heads", "head"});
    set_int(*last_, "axis", 0);
    return op("Reshape", {x, target});
  }
  std::string join(const std::string& x) {
    const std::string shape = op("Shape", {x});
    const std::string target = op("Concat", {op("Gather", {shape, "zero"}), op("Gather", {shape, "index1"}), "all"});
    set_int(*last_, "axis", 0);
    return op("Reshape", {x, target});
  }
  std::string attention(const std::string& x) {
    const std::string q = transpose(split(linear(x, "q", width_, width_)), {0, 2, 1, 3});
    const std::string k = transpose(split(linear(x, "k", width_, width_)), {0, 2, 3, 1});
    const std::string v = transpose(split(linear(x, "v", width_, width_)), {0, 2, 1, 3});
    const std::string scores = op("Softmax", {op("Div", {op("MatMul", {q, k}), "scale"})});
    set_int(*last_, "axis", -1);
    return linear(join(transpose(op("MatMul", {scores, v}), {0, 2, 1, 3})), "out", width_, width_);
  }
  std::string feed_forward(const std::string& x) {
    const std::string h = linear(x, "up", width_, 4 * width_);
    const std::string gate = op("Add", {op("Erf", {op("Div", {h, "root"})}), "one"});
    return linear(op("Mul", {op("Mul", {h, gate}), "scale"}), "down", 4 * width_, width_);
  }
  std::string mean(const std::string& x) {
    const std::string y = op("ReduceMean", {x});
    set_ints(*last_, "axes", {-1});
    return y;
  }
  std::string norm(const std::string& x, const std::string& name) {
    const std::string centred = op("Sub", {x, mean(x)});
    const std::string variance = op("Add", {mean(op("Pow", {centred, "two"})), "epsilon"});
    const std::string normal = op("Div", {centred, op("Sqrt", {variance})});
    return op("Add", {op("Mul", {normal, weight(name + ".weight", {width_})}), weight(name + ".bias", {width_})});
  }

  ModelBuilder b_{13};
  int width_, heads_, next_ = 0;
  std::string prefix_;
  onnx::NodeProto* last_ = nullptr;
};

}  // namespace

std::string transformer_export(int layers, int batch, int positions, int width, int heads) {
  return Exporter(batch, positions, width, heads).run(layers);
}

}  // namespace doppler::program
