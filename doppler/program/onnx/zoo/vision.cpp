#include "doppler/program/onnx/zoo/vision.h"

#include <cmath>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/zoo/model_writer.h"

namespace doppler::program {
namespace {

using Value = ModelWriter::Value;
using Draw = ModelWriter::Draw;
constexpr Index kClasses = 1000;

// Pairs of (rows, columns); most are squares.
struct Two {
  Index rows, columns;
  Two(Index both) : rows(both), columns(both) {}  // NOLINT(google-explicit-constructor): a number is a square
  Two(Index r, Index c) : rows(r), columns(c) {}
};

struct Convolution {
  Index channels;
  Two kernel;
  Index stride = 1;
  Two padding = 0;
  Index groups = 1;
};

// What the networks are made of: convolutions, pools, and the end of all of them.
class VisionWriter : public ModelWriter {
 public:
  VisionWriter(const std::string& name, const ZooSizes& sizes) : ModelWriter(name, sizes.weights), sizes_(sizes) {}

  Value picture(Index usual, Index least) {
    const Index size = sizes_.image == 0 ? usual : sizes_.image;
    if (size < least)
      throw InputError(fmt::format("image: found {}; required at least {} rows and columns", size, least));
    return input("input", {sizes_.batch, 3, size, size});
  }

  // A convolution without a bias and its batch normalisation: two nodes, or one with the normalisation in it.
  Value convolution(const std::string& name, const std::string& norm, const Value& x, const Convolution& c,
                    float epsilon = 1e-5F) {
    const Value w = convolution_weight(name, x, c);
    if (!sizes_.batch_norm) return convolve(name, {x, w, normalising_bias(name, c.channels)}, c);
    const Value y = convolve(name, {x, w}, c);
    const Module module = in(norm);
    const Shape each = {c.channels};
    return node("BatchNormalization",
                {y, weight("weight", each, Draw::ones), weight("bias", each, Draw::zeros),
                 weight("running_mean", each, Draw::zeros), weight("running_var", each, Draw::ones)},
                y.shape, {attribute("epsilon", epsilon)});
  }
  // One with a bias and no normalisation.
  Value plain_convolution(const std::string& name, const Value& x, const Convolution& c) {
    const Value w = convolution_weight(name, x, c);
    return convolve(name, {x, w, normalising_bias(name, c.channels)}, c);
  }

  Value relu(const Value& x) { return node("Relu", {x}, x.shape); }
  Value pool(const std::string& op, const Value& x, Index kernel, Index stride, Index padding) {
    Attributes attributes = {attribute("kernel_shape", std::vector<Index>{kernel, kernel}),
                             attribute("strides", std::vector<Index>{stride, stride}),
                             attribute("pads", std::vector<Index>(4, padding))};
    if (op == "AveragePool") attributes.push_back(attribute("count_include_pad", Index{1}));
    return node(op, {x}, shape_after(x, x.shape[1], kernel, stride, padding), std::move(attributes));
  }
  Value concat(const std::vector<Value>& parts) {
    Shape shape = parts.front().shape;
    shape[1] = 0;
    for (const Value& part : parts) shape[1] += part.shape[1];
    return node("Concat", parts, shape, {attribute("axis", Index{1})});
  }
  Value global_average(const Value& x) { return node("GlobalAveragePool", {x}, {x.shape[0], x.shape[1], 1, 1}); }
  Value flatten(const Value& x) {
    return node("Flatten", {x}, {x.shape[0], x.shape[1]}, {attribute("axis", Index{1})});
  }

 private:
  Value convolution_weight(const std::string& name, const Value& x, const Convolution& c) {
    const Module module = in(name);
    const Index each = x.shape[1] / c.groups;
    const double inputs = static_cast<double>(each * c.kernel.rows * c.kernel.columns);
    return weight("weight", {c.channels, each, c.kernel.rows, c.kernel.columns}, Draw::normal, std::sqrt(2 / inputs));
  }
  Value normalising_bias(const std::string& name, Index channels) {
    const Module module = in(name);
    return weight("bias", {channels}, Draw::zeros);
  }
  Value convolve(const std::string& name, const std::vector<Value>& inputs, const Convolution& c) {
    const Module module = in(name);
    const Two kernel = c.kernel, padding = c.padding;
    return node("Conv", inputs, shape_after(inputs.front(), c.channels, kernel, c.stride, padding),
                {attribute("kernel_shape", std::vector<Index>{kernel.rows, kernel.columns}),
                 attribute("strides", std::vector<Index>{c.stride, c.stride}),
                 attribute("pads", std::vector<Index>{padding.rows, padding.columns, padding.rows, padding.columns}),
                 attribute("group", c.groups)});
  }
  static Shape shape_after(const Value& x, Index channels, Two kernel, Index stride, Two padding) {
    return {x.shape[0], channels, (x.shape[2] + 2 * padding.rows - kernel.rows) / stride + 1,
            (x.shape[3] + 2 * padding.columns - kernel.columns) / stride + 1};
  }

  ZooSizes sizes_;
};

// ---- ResNet-50 ----

Value bottleneck(VisionWriter& net, Value x, Index width, Index stride, bool projected) {
  Value shortcut = x;
  Value y = net.relu(net.convolution("conv1", "bn1", x, {.channels = width, .kernel = 1}));
  y = net.relu(net.convolution("conv2", "bn2", y, {.channels = width, .kernel = 3, .stride = stride, .padding = 1}));
  y = net.convolution("conv3", "bn3", y, {.channels = 4 * width, .kernel = 1});
  if (projected) {
    const auto list = net.in("downsample");
    shortcut = net.convolution("0", "1", x, {.channels = 4 * width, .kernel = 1, .stride = stride});
  }
  return net.relu(net.add(y, shortcut));
}

// ---- Inception-V3: module names and sizes as in torchvision ----

constexpr float kInceptionEpsilon = 1e-3F;

Value basic(VisionWriter& net, const std::string& name, const Value& x, const Convolution& c) {
  const auto module = net.in(name);
  return net.relu(net.convolution("conv", "bn", x, c, kInceptionEpsilon));
}

Value block_a(VisionWriter& net, const std::string& name, const Value& x, Index pooled) {
  const auto module = net.in(name);
  const Value one = basic(net, "branch1x1", x, {.channels = 64, .kernel = 1});
  Value five = basic(net, "branch5x5_1", x, {.channels = 48, .kernel = 1});
  five = basic(net, "branch5x5_2", five, {.channels = 64, .kernel = 5, .padding = 2});
  Value three = basic(net, "branch3x3dbl_1", x, {.channels = 64, .kernel = 1});
  three = basic(net, "branch3x3dbl_2", three, {.channels = 96, .kernel = 3, .padding = 1});
  three = basic(net, "branch3x3dbl_3", three, {.channels = 96, .kernel = 3, .padding = 1});
  const Value pool = basic(net, "branch_pool", net.pool("AveragePool", x, 3, 1, 1), {.channels = pooled, .kernel = 1});
  return net.concat({one, five, three, pool});
}

Value block_b(VisionWriter& net, const std::string& name, const Value& x) {
  const auto module = net.in(name);
  const Value three = basic(net, "branch3x3", x, {.channels = 384, .kernel = 3, .stride = 2});
  Value twice = basic(net, "branch3x3dbl_1", x, {.channels = 64, .kernel = 1});
  twice = basic(net, "branch3x3dbl_2", twice, {.channels = 96, .kernel = 3, .padding = 1});
  twice = basic(net, "branch3x3dbl_3", twice, {.channels = 96, .kernel = 3, .stride = 2});
  return net.concat({three, twice, net.pool("MaxPool", x, 3, 2, 0)});
}

Value block_c(VisionWriter& net, const std::string& name, const Value& x, Index width) {
  const auto module = net.in(name);
  const Convolution row{.channels = width, .kernel = {1, 7}, .padding = {0, 3}};
  const Convolution column{.channels = width, .kernel = {7, 1}, .padding = {3, 0}};
  const auto last = [](Convolution c) {
    c.channels = 192;
    return c;
  };
  const Value one = basic(net, "branch1x1", x, {.channels = 192, .kernel = 1});
  Value seven = basic(net, "branch7x7_1", x, {.channels = width, .kernel = 1});
  seven = basic(net, "branch7x7_2", seven, row);
  seven = basic(net, "branch7x7_3", seven, last(column));
  Value twice = basic(net, "branch7x7dbl_1", x, {.channels = width, .kernel = 1});
  twice = basic(net, "branch7x7dbl_2", twice, column);
  twice = basic(net, "branch7x7dbl_3", twice, row);
  twice = basic(net, "branch7x7dbl_4", twice, column);
  twice = basic(net, "branch7x7dbl_5", twice, last(row));
  const Value pool = basic(net, "branch_pool", net.pool("AveragePool", x, 3, 1, 1), {.channels = 192, .kernel = 1});
  return net.concat({one, seven, twice, pool});
}

Value block_d(VisionWriter& net, const std::string& name, const Value& x) {
  const auto module = net.in(name);
  Value three = basic(net, "branch3x3_1", x, {.channels = 192, .kernel = 1});
  three = basic(net, "branch3x3_2", three, {.channels = 320, .kernel = 3, .stride = 2});
  Value seven = basic(net, "branch7x7x3_1", x, {.channels = 192, .kernel = 1});
  seven = basic(net, "branch7x7x3_2", seven, {.channels = 192, .kernel = {1, 7}, .padding = {0, 3}});
  seven = basic(net, "branch7x7x3_3", seven, {.channels = 192, .kernel = {7, 1}, .padding = {3, 0}});
  seven = basic(net, "branch7x7x3_4", seven, {.channels = 192, .kernel = 3, .stride = 2});
  return net.concat({three, seven, net.pool("MaxPool", x, 3, 2, 0)});
}

Value block_e(VisionWriter& net, const std::string& name, const Value& x) {
  const auto module = net.in(name);
  const Convolution row{.channels = 384, .kernel = {1, 3}, .padding = {0, 1}};
  const Convolution column{.channels = 384, .kernel = {3, 1}, .padding = {1, 0}};
  const Value one = basic(net, "branch1x1", x, {.channels = 320, .kernel = 1});
  const Value three = basic(net, "branch3x3_1", x, {.channels = 384, .kernel = 1});
  const Value both = net.concat({basic(net, "branch3x3_2a", three, row), basic(net, "branch3x3_2b", three, column)});
  Value twice = basic(net, "branch3x3dbl_1", x, {.channels = 448, .kernel = 1});
  twice = basic(net, "branch3x3dbl_2", twice, {.channels = 384, .kernel = 3, .padding = 1});
  twice = net.concat({basic(net, "branch3x3dbl_3a", twice, row), basic(net, "branch3x3dbl_3b", twice, column)});
  const Value pool = basic(net, "branch_pool", net.pool("AveragePool", x, 3, 1, 1), {.channels = 192, .kernel = 1});
  return net.concat({one, both, twice, pool});
}

// ---- MobileNet-V3 large ----

constexpr float kMobileEpsilon = 1e-3F;

struct Inverted {
  Index kernel, expanded, channels;
  bool squeezed, hard;  // with squeeze and excitation; hard swish instead of relu
  Index stride;
};
constexpr Inverted kMobileBlocks[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

// The next multiple of eight, but not less than nine tenths.
Index to_multiple_of_eight(Index value) {
  Index result = std::max<Index>(8, (value + 4) / 8 * 8);
  if (10 * result < 9 * value) result += 8;
  return result;
}

Value hard_swish(VisionWriter& net, const Value& x) { return net.node("HardSwish", {x}, x.shape); }

Value excite(VisionWriter& net, const std::string& name, const Value& x) {
  const auto module = net.in(name);
  const Index squeezed = to_multiple_of_eight(x.shape[1] / 4);
  const Value pooled = net.global_average(x);
  const Value inner = net.relu(net.plain_convolution("fc1", pooled, {.channels = squeezed, .kernel = 1}));
  const Value outer = net.plain_convolution("fc2", inner, {.channels = x.shape[1], .kernel = 1});
  const Value gate = net.node("HardSigmoid", {outer}, outer.shape, {attribute("alpha", 1.0F / 6)});
  return net.node("Mul", {gate, x}, x.shape);
}

Value inverted_residual(VisionWriter& net, const Value& x, const Inverted& block) {
  const auto module = net.in("block");
  int part = 0;
  Value y = x;
  const auto conv = [&](const Convolution& c, bool activated) {
    const auto layer = net.in(fmt::format("{}", part++));
    y = net.convolution("0", "1", y, c, kMobileEpsilon);
    if (activated) y = block.hard ? hard_swish(net, y) : net.relu(y);
  };
  if (block.expanded != x.shape[1]) conv({.channels = block.expanded, .kernel = 1}, true);
  conv({.channels = block.expanded,
        .kernel = block.kernel,
        .stride = block.stride,
        .padding = block.kernel / 2,
        .groups = block.expanded},
       true);
  if (block.squeezed) y = excite(net, fmt::format("{}", part++), y);
  conv({.channels = block.channels, .kernel = 1}, false);
  const bool residual = block.stride == 1 && block.channels == x.shape[1];
  return residual ? net.add(y, x) : y;
}

}  // namespace

std::string resnet50(const ZooSizes& sizes) {
  VisionWriter net("resnet50", sizes);
  Value x = net.picture(224, 32);
  x = net.relu(net.convolution("conv1", "bn1", x, {.channels = 64, .kernel = 7, .stride = 2, .padding = 3}));
  x = net.pool("MaxPool", x, 3, 2, 1);
  constexpr int kBlocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const auto layer = net.in(fmt::format("layer{}", stage + 1));
    for (int block = 0; block < kBlocks[stage]; ++block) {
      const auto module = net.in(fmt::format("{}", block));
      x = bottleneck(net, x, Index{64} << stage, stage > 0 && block == 0 ? 2 : 1, block == 0);
    }
  }
  net.output("output", net.linear("fc", net.flatten(net.global_average(x)), kClasses));
  return net.bytes();
}

std::string inception_v3(const ZooSizes& sizes) {
  VisionWriter net("inception_v3", sizes);
  Value x = net.picture(299, 75);
  x = basic(net, "Conv2d_1a_3x3", x, {.channels = 32, .kernel = 3, .stride = 2});
  x = basic(net, "Conv2d_2a_3x3", x, {.channels = 32, .kernel = 3});
  x = basic(net, "Conv2d_2b_3x3", x, {.channels = 64, .kernel = 3, .padding = 1});
  x = net.pool("MaxPool", x, 3, 2, 0);
  x = basic(net, "Conv2d_3b_1x1", x, {.channels = 80, .kernel = 1});
  x = basic(net, "Conv2d_4a_3x3", x, {.channels = 192, .kernel = 3});
  x = net.pool("MaxPool", x, 3, 2, 0);
  x = block_a(net, "Mixed_5b", x, 32);
  x = block_a(net, "Mixed_5c", x, 64);
  x = block_a(net, "Mixed_5d", x, 64);
  x = block_b(net, "Mixed_6a", x);
  x = block_c(net, "Mixed_6b", x, 128);
  x = block_c(net, "Mixed_6c", x, 160);
  x = block_c(net, "Mixed_6d", x, 160);
  x = block_c(net, "Mixed_6e", x, 192);
  x = block_d(net, "Mixed_7a", x);
  x = block_e(net, "Mixed_7b", x);
  x = block_e(net, "Mixed_7c", x);
  net.output("output", net.linear("fc", net.flatten(net.global_average(x)), kClasses));
  return net.bytes();
}

std::string mobilenet_v3(const ZooSizes& sizes) {
  VisionWriter net("mobilenet_v3_large", sizes);
  Value x = net.picture(224, 32);
  {
    const auto features = net.in("features");
    int layer = 0;
    const auto activated = [&](Index channels, Index kernel, Index stride) {
      const auto module = net.in(fmt::format("{}", layer++));
      const Convolution c{.channels = channels, .kernel = kernel, .stride = stride, .padding = kernel / 2};
      x = hard_swish(net, net.convolution("0", "1", x, c, kMobileEpsilon));
    };
    activated(16, 3, 2);
    for (const Inverted& block : kMobileBlocks) {
      const auto module = net.in(fmt::format("{}", layer++));
      x = inverted_residual(net, x, block);
    }
    activated(960, 1, 1);
  }
  x = net.flatten(net.global_average(x));
  const auto classifier = net.in("classifier");
  x = hard_swish(net, net.linear("0", x, 1280));
  net.output("output", net.linear("3", x, kClasses));
  return net.bytes();
}

}  // namespace doppler::program
