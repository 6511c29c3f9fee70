#pragma once

#include <filesystem>
#include <memory>

#include "doppler/learn/doppler/network.h"
#include "doppler/learn/policy.h"

namespace doppler {

// The published network (arXiv 2505.23131 and its code), for comparison: SEL and PLC each have a message-passing
// network of hidden size 128, whose edge network turns an edge's cost into a 128 × 128 matrix, with six rounds of a
// GRU; SEL adds up the embeddings along the critical paths to the exit and the entry. Where the published code is
// defective (docs of the method, "pitfalls"), this is what was meant:
//   - path sums belong to their own op; the t-level charges the producer;
//   - both directions of an edge carry the producer's cost, and a bit for the direction;
//   - inputs are standardised over the graph, not over the ops that happen to be ready, so that SEL's scores do not
//     change within an episode; they are limited to ±10;
//   - the sum over a device is scaled by devices / ops instead of standardised over the devices (network.h).
// The first map of the device features has no bias; a sixth feature says whether an input is there.
//
// It runs on libtorch, in the module doppler_torch: loading that takes half a second, which the rest of the program
// should not pay. Throws InputError if open_module() finds no module from `directory`.
std::unique_ptr<Network<float>> make_paper_network(Rng rng, const std::filesystem::path& directory);
// DOPPLER with that network, whose module lies where this program does; null unless the text is "paper".
std::unique_ptr<Policy> make_paper_policy(const std::string& architecture, Rng rng);

}  // namespace doppler
