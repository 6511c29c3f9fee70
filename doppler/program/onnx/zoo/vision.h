#pragma once

#include <string>

#include "doppler/program/onnx/zoo/zoo.h"

// Networks of pictures, as torchvision has them without their auxiliary parts. Internal to the zoo.
namespace doppler::program {

std::string resnet50(const ZooSizes& sizes);      // He et al., 2016
std::string inception_v3(const ZooSizes& sizes);  // Szegedy et al., 2016
std::string mobilenet_v3(const ZooSizes& sizes);  // Howard et al., 2019: the large one

}  // namespace doppler::program
