#pragma once

#include <memory>

#include "doppler/base/mapped_file.h"
#include "doppler/graph.h"
#include "doppler/program/onnx/reading.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::program {

// Makes a model that was read ready to be run. `op_of` has the op of the graph by op of the reading, kNone for views;
// `blocks` are those of a model that is cut, whose ops `op_of` numbers.
// The data of weights is taken out of the reading, not copied; that of other files is mapped. Throws InputError if such
// a file is missing, short, or outside of the folder of the model.
// If the model's file is mapped, weights stay there.
std::shared_ptr<const model::RunnableModel> make_runnable(Reading reading, const std::vector<OpId>& op_of,
                                                          std::vector<model::RunnableModel::Block> blocks = {},
                                                          std::shared_ptr<const MappedFile> file = nullptr);

}  // namespace doppler::program
