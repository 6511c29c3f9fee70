#pragma once

#include <memory>

#include "doppler/graph.h"
#include "doppler/program/onnx/reading.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::program {

// Makes a model that was read ready to be run. `op_of` has the op of the graph by op of the reading, kNone for views.
// The data of weights is taken out of the reading, not copied; that of other files is mapped. Throws InputError if such
// a file is missing, short, or outside of the folder of the model.
std::shared_ptr<const model::RunnableModel> make_runnable(Reading reading, const std::vector<OpId>& op_of);

}  // namespace doppler::program
