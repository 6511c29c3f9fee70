// The entry of the module doppler_models, which brings its own copy of what it uses of ours.

#include "doppler/kernels/onnx/kernel.h"

extern "C" const doppler::model::KernelLibrary* doppler_kernel_library() { return &doppler::model::kernel_library(); }
extern "C" const doppler::model::NodeEvaluator* doppler_node_evaluator() { return &doppler::model::kernel_library(); }
