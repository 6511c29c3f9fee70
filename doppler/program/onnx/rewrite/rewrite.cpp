#include "doppler/program/onnx/rewrite/rewrite.h"

#include "doppler/program/onnx/rewrite/passes.h"

namespace doppler::program {
namespace {

struct Pass {
  const char* name;
  std::size_t (*run)(Rewriting&);
};
// The order matters: patterns come before the products that would take parts of them away.
constexpr Pass kPasses[] = {
    {"padding into convolutions and pools", pad_into_window},
    {"batch normalisations into convolutions", fold_batch_norm},
    {"layer normalisations", fuse_layer_norm},
    {"activations of several nodes", fuse_activation},
    {"attentions", fuse_attention},
    {"transposes and scales into matrix products", fuse_matmul},
    {"bias, residual and activation into products", fuse_epilogue},
};

}  // namespace

Rewritten rewrite(Reading& reading) {
  Rewriting graph(reading);
  Rewritten result;
  for (const Pass& pass : kPasses) result.passes.push_back({pass.name, pass.run(graph)});
  result.place = graph.finish();
  return result;
}

}  // namespace doppler::program
